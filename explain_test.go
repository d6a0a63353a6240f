package umavez

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"
)

// declaredReasons reads the reasons from the source, so that none is forgotten.
func declaredReasons(t *testing.T) (reasons []Reason) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "record.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		reasons = append(reasons, Reason(text))
		return true
	})
	if len(reasons) < 11 {
		t.Fatalf("found the reasons %q in record.go; there are more", reasons)
	}
	return reasons
}

// TestExplainGoesThroughAll: for each state, policy and reason there are whole
// sentences, and different ones where there is something different to do.
func TestExplainGoesThroughAll(t *testing.T) {
	for state := Vacant; state <= Expired+1; state++ {
		for policy := range Atomic + 2 {
			for _, reason := range append(declaredReasons(t), "the user's own") {
				rec := Record{State: state, Policy: policy, Reason: reason}
				if state != Lost {
					rec.Reason = ""
				}
				name := state.String() + ", " + policy.String() + ", " + string(rec.Reason)
				why, do := rec.Explain()
				wantSentences(t, name+": why", why)
				wantSentences(t, name+": what to do", do)
				if mustSettle := strings.HasPrefix(do, "Find out"); mustSettle != rec.Unknown() {
					t.Errorf("%s: unknown is %v, and what to do is %q", name, rec.Unknown(), do)
				}
				rec.Contradicted = true
				if whyToo, doToo := rec.Explain(); !strings.HasPrefix(whyToo, why+" ") || !strings.HasPrefix(doToo, do+" ") {
					t.Errorf("%s: a contradiction is not told: %q, %q", name, whyToo, doToo)
				}
			}
		}
	}
}

func wantSentences(t *testing.T, what, text string) {
	t.Helper()
	if text == "" || !strings.HasSuffix(text, ".") || strings.Contains(text, "%!") || strings.Contains(text, "  ") || strings.Contains(text, "..") {
		t.Errorf("%s: %q", what, text)
	}
}

// TestReasonsAreExplained: each in words of its own.
func TestReasonsAreExplained(t *testing.T) {
	said := map[string]Reason{}
	for _, reason := range declaredReasons(t) {
		text := reason.explain()
		if strings.Contains(text, string(reason)+`"`) {
			t.Errorf("the reason %q is not explained: %s", reason, text)
		}
		if other, twice := said[text]; twice {
			t.Errorf("the reasons %q and %q are explained alike", reason, other)
		}
		said[text] = reason
	}
	if got := Reason("x \"y\"").explain(); !strings.Contains(got, `"x \"y\""`) {
		t.Errorf("a reason of the user's own: %s", got)
	}
}

// TestExplainTellsWhatThereIs: what a record holds, and for how long.
func TestExplainTellsWhatThereIs(t *testing.T) {
	doubt := Record{State: Lost, Policy: Stepped, Reason: ReasonStepInDoubt, Steps: []KeptStep{
		{Name: sentMark + "kept"}, {Name: "kept"}, {Name: sentMark + "lost"},
	}}
	for _, c := range []struct {
		name     string
		rec      Record
		why, do  string
		whyNever string
	}{
		{"a lease", Record{State: Running, LeaseLeft: 12345 * time.Millisecond}, "another 12.3s", "cannot be settled", "known"},
		{"an answer", Record{State: Done}, "its answer is kept", "forget", "settled"},
		{"a settled answer", Record{State: Done, Settled: true}, "was settled as one that happened", "forget", "operation is done"},
		{"a last word", Record{State: Lost, Last: []byte("502")}, "last answer that was seen", "settle", "502"},
		{"no last word", Record{State: Lost}, "it is not run again", "settle", "last answer"},
		{"a step", doubt, `about to send "lost".`, "settle", `"kept"`},
		{"a hold", Record{State: Lost, HeldLeft: 90 * time.Second}, "not run again", "in 1m30s at the latest; wait", "looking"},
		{"cleared", Record{State: Lost, Policy: Stepped, Reason: ReasonSettled}, "cannot happen any more", "resumes after the last kept step", "may have"},
		{"rerunnable", Record{State: Lost, Policy: Rerunnable, Reason: ReasonPanic}, "panicked", "declared that this is safe", "not run"},
	} {
		why, do := c.rec.Explain()
		if !strings.Contains(why, c.why) || !strings.Contains(do, c.do) || strings.Contains(why, c.whyNever) {
			t.Errorf("%s: want %q and %q, without %q:\n%s\n%s", c.name, c.why, c.do, c.whyNever, why, do)
		}
	}
}
