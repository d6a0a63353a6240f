// What a person reads on the demo's page: shown, in page_test.go.
() => {
  const text = e => (e ? e.innerText.trim() : "");
  const of = id => text(document.getElementById(id));
  const sides = ["unprotected", "protected"];
  const by = f => Object.fromEntries(sides.map((s, i) => [s, f(s, i)]));
  const card = li => ({
    title: text(li.querySelector("h2")),
    sides: by((s, i) => [...li.querySelectorAll(".two > div")[i].querySelectorAll("p")].map(text)),
    state: text(li.querySelector(".life [aria-current=step]")).replace("● ", ""),
    says: text(li.querySelector(".life + p")),
    buttons: [...li.querySelectorAll("button:not([aria-disabled=true])")].map(text),
  });
  return {
    lang: document.documentElement.lang,
    status: of("status"),
    numbers: by(s => of("n-" + s)),
    alive: by(s => of("a-" + s)),
    switched: document.getElementById("without").checked,
    payments: [...document.querySelectorAll("#payments > li")].map(card),
  };
}
