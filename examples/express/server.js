// A payment API that charges for every request it gets. It knows nothing of
// idempotency: a second request is a second charge. `umavez serve` in front of
// it changes that, and nothing in here.
//
//   PORT    where to listen on 127.0.0.1 (8082); 0 for any free port
//   LEDGER  the file that charges are written to (ledger.jsonl)
//   NOTIFY  a URL that is told of every charge, and waited for, before the
//           answer: a stock, an invoice. Between charge and answer time passes,
//           and in that time things die.
import express from 'express';
import { openLedger } from './ledger.js';

const ledger = await openLedger(process.env.LEDGER ?? 'ledger.jsonl');
const app = express();
app.use(express.json());

app.post('/pagamentos', async (req, res) => {
  const { valor, cartao } = req.body ?? {};
  if (!Number.isFinite(valor) || valor <= 0) {
    return res.status(400).json({ erro: 'valor deve ser um número maior que zero' });
  }
  if (typeof cartao !== 'string' || !/^\d{12,19}$/.test(cartao)) {
    return res.status(400).json({ erro: 'cartao deve ter de 12 a 19 dígitos' });
  }
  const { id } = await ledger.charge(valor, cartao);
  await notify(id);
  res.status(201).location(`/pagamentos/${id}`).json({ id, status: 'aprovado' });
});

app.get('/pagamentos', async (req, res) => {
  res.type('application/jsonl').send(await ledger.read());
});

// What Express says of a body that it cannot read is in English; the API's
// errors are in Portuguese.
app.use((err, req, res, next) => {
  if (res.headersSent) return next(err);
  if (err.type === 'entity.parse.failed') {
    return res.status(400).json({ erro: 'o corpo não é JSON válido' });
  }
  if (err.status >= 400 && err.status < 500) {
    return res.status(err.status).json({ erro: 'o pedido não pode ser lido' });
  }
  console.error(err);
  // The charge may have happened: 500 says just that, and no more.
  res.status(500).json({ erro: 'erro interno' });
});

async function notify(id) {
  if (!process.env.NOTIFY) return;
  try {
    await fetch(process.env.NOTIFY, { method: 'POST', body: id });
  } catch (err) {
    console.error(`express: ${id} was not passed on: ${err.message}`);
  }
}

const server = app.listen(Number(process.env.PORT ?? 8082), '127.0.0.1', (err) => {
  if (err) throw err;
  console.error(`express: listening on http://127.0.0.1:${server.address().port}`);
});
