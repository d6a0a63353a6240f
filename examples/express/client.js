// A client that pays once. The key belongs to the intent: it is made before the
// first attempt, and every attempt sends the same key and the same bytes.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * An intent to pay: its key, and its body as the bytes that every attempt sends.
 * Keep it where it outlives the page or the process: with it, and only with it,
 * a payment can be taken up again without being made twice.
 */
export function newIntent(order, key = randomUUID()) {
  return Object.freeze({ key, body: JSON.stringify(order) });
}

/** Refusals by which umavez says that this attempt has run nothing. */
const nothingRun = new Set(['store-unavailable', 'caller-unavailable', 'upstream-unreachable', 'request-incomplete', 'too-many-unsettled']);

/**
 * Pays, in as many attempts as it takes, and resolves to
 *
 *   { outcome, status, body, replayed, attempts, key }
 *
 * where outcome is
 *
 *   'done'     it was paid; body is the API's answer
 *   'refused'  it was not paid; body says why
 *   'unknown'  nobody can say yet. This is not "failed": whoever makes a new
 *              intent from it may pay twice. Ask again with the same intent, or
 *              have somebody look.
 *
 * It never rejects. `first` and `longest` bound the pauses, in milliseconds;
 * `timeout` is for one attempt.
 */
export async function pay(url, intent, { tries = 8, timeout = 30_000, first = 200, longest = 5_000 } = {}) {
  let unsure = false; // an attempt may have paid, and its answer did not come
  let last = {};
  for (let attempts = 1; attempts <= tries; attempts++) {
    last = { status: undefined, body: undefined, replayed: false, key: intent.key, attempts };
    const verdict = await attempt(url, intent, timeout, last);
    unsure ||= verdict.unsure === true;
    if (verdict.outcome === 'refused' && unsure && !verdict.final) return { ...last, outcome: 'unknown' };
    if (verdict.outcome) return { ...last, outcome: verdict.outcome };
    if (attempts < tries) await pause(delay(verdict.after, attempts, first, longest));
  }
  return { ...last, outcome: unsure ? 'unknown' : 'refused' };
}

/** Makes one attempt, fills `last` with its answer and says what it means. */
async function attempt(url, intent, timeout, last) {
  let res, text;
  try {
    res = await fetch(`${url}/pagamentos`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': intent.key },
      body: intent.body,
      redirect: 'error', // another origin must not get the card
      signal: AbortSignal.timeout(timeout),
    });
    text = await res.text();
  } catch {
    return { unsure: true }; // it may have arrived, and it may have paid
  }
  last.status = res.status;
  last.body = parsed(text);
  last.replayed = res.headers.get('Idempotent-Replayed') === 'true';
  return judge(res, last);
}

/**
 * What an answer means: an outcome, or that the next attempt may know more.
 * unsure says that the payment may have been made, final that the answer is the
 * payment's own and holds whatever earlier attempts met.
 */
function judge(res, { body, replayed }) {
  const code = ours(res) ? body?.code : undefined;
  const after = Number(res.headers.get('Retry-After')) * 1000 || 0;
  const unknown = res.headers.get('Idempotency-Status') === 'unknown';
  if (res.ok) return { outcome: 'done' };
  if (code === 'in-progress') return { unsure: true, after };
  if (res.status === 409 && code) {
    // Somebody looks into it where there is a Retry-After. Nothing else is worth
    // asking again, and nothing here says that it was not paid.
    return code === 'outcome-unknown' && res.headers.has('Retry-After') ? { unsure: true, after } : { outcome: 'unknown' };
  }
  if (res.status === 425 || res.status === 429) return { after };
  if (res.status >= 500) {
    if (unknown || replayed) return { outcome: 'unknown' };
    return { unsure: !nothingRun.has(code), after };
  }
  // 401, 403 and the like come before the payment, so they say nothing of an
  // earlier attempt; nor do umavez's own refusals. Other 4xx are the answer that
  // umavez keeps for this key.
  const final = !code && ![401, 403, 405, 406, 407, 411, 413, 414, 415, 416, 417, 421, 426, 428, 431].includes(res.status);
  return { outcome: 'refused', final };
}

const ours = (res) => res.headers.get('Content-Type')?.startsWith('application/problem+json');

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Full jitter, so that clients that fell together do not come back together. */
function delay(after, attempts, first, longest) {
  return after + Math.random() * Math.min(longest, first * 2 ** (attempts - 1));
}

// What follows is the command:
//   node client.js [--url URL] [--key KEY] [--tries N] VALOR CARTAO
// It ends with 0 when it was paid, 1 when it was not, 3 when nobody can say.
const statuses = { done: 0, refused: 1, unknown: 3 };

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      url: { type: 'string', default: 'http://127.0.0.1:8081' },
      key: { type: 'string' },
      tries: { type: 'string', default: '8' },
    },
  });
  if (positionals.length !== 2) {
    console.error('uso: node client.js [--url URL] [--key CHAVE] [--tries N] VALOR CARTAO');
    return 2;
  }
  const intent = newIntent({ valor: Number(positionals[0]), cartao: positionals[1] }, values.key);
  console.error(`chave: ${intent.key}`); // with it the payment can be taken up again
  const result = await pay(values.url, intent, { tries: Number(values.tries) });
  console.log(say(result));
  return statuses[result.outcome];
}

function say({ outcome, status, body, replayed, attempts, key }) {
  const times = `${attempts} tentativa${attempts === 1 ? '' : 's'}`;
  switch (outcome) {
    case 'done':
      return `${body?.status ?? 'feito'}: ${body?.id ?? 'sem resposta guardada'} (${times}${replayed ? ', resposta repetida' : ''})`;
    case 'refused':
      return `recusado: ${body?.erro ?? body?.detail ?? status} (${times})`;
    default:
      return `resultado desconhecido (outcome unknown): não pague de novo; consulte ou tente com --key ${key} (${times})`;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main();
