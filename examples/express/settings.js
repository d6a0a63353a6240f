// The payment API once more, with the settings that Express applications have.
// docs/express.md says what each needs of umavez serve, and its tests try them
// here. Charges are only counted: each test starts a process of its own.
//
//   PORT=0 node settings.js [strict] [case-sensitive] [cors] [cors-exposed]
//     [compression] [helmet] [trust-proxy] [keep-alive=MILLISECONDS]
import compression from 'compression';
import cors from 'cors';
import express from 'express';
import helmet from 'helmet';

const switches = new Map(process.argv.slice(2).map((arg) => arg.split('=')));
const on = (name) => switches.has(name);

const app = express();
app.set('strict routing', on('strict'));
app.set('case sensitive routing', on('case-sensitive'));
if (on('trust-proxy')) app.set('trust proxy', 'loopback');
if (on('helmet')) app.use(helmet());
if (on('cors')) app.use(cors());
if (on('cors-exposed')) {
  app.use(cors({ exposedHeaders: ['Idempotency-Key', 'Idempotent-Replayed', 'Idempotency-Status', 'Retry-After', 'Location'] }));
}
if (on('compression')) app.use(compression({ threshold: 0 }));

let charges = 0;
let connections = 0;
const charge = () => ({ id: ++charges, status: 'aprovado' });

app.get('/cobrancas', (req, res) => res.json({ charges, connections }));

// strict routing is a setting of routers too, so this one is on the application.
app.post('/pagamentos', express.json(), (req, res) => {
  const made = charge();
  res.status(201).location(`/pagamentos/${made.id}`).json({ ...made, ip: req.ip, host: req.hostname });
});

// An upload of up to 4 MiB. A parser such as multer reads the same bytes.
app.post('/comprovantes', express.raw({ type: 'multipart/form-data', limit: '4mb' }), (req, res) => {
  res.status(201).json({ ...charge(), bytes: req.body.length });
});

// A session in a cookie, which is another one after each request.
const people = new Map([['s1', 'ana'], ['s2', 'ana'], ['s3', 'bia']]);
const caller = (req) => people.get(/(?:^|; )sessao=(\w+)/.exec(req.headers.cookie ?? '')?.[1]);
app.get('/quem', (req, res) => {
  const name = caller(req);
  if (!name) return res.sendStatus(401);
  res.set('X-Auth-Request-User', name).sendStatus(204);
});
app.post('/sessao/pagamentos', express.json(), (req, res) => {
  if (!caller(req)) return res.sendStatus(401);
  res.cookie('sessao', 's2').status(201).json(charge());
});

// An error after the charge, and one before it that says so.
app.post('/falha-depois', () => {
  charge();
  throw new Error('the gateway has charged, and then this');
});
const tried = new Set();
const firstTry = (path) => !tried.has(path) && tried.add(path);
app.post('/falha-antes', (req, res) => {
  if (firstTry(req.path)) {
    res.set('Idempotency-Outcome', 'released');
    throw new Error('nothing was done yet');
  }
  res.status(201).json(charge());
});

// A rate limit.
app.post('/limite', (req, res) => {
  if (firstTry(req.path)) return res.set('Retry-After', '1').sendStatus(429);
  res.status(201).json(charge());
});

// An answer in pieces, and a stream of events.
app.post('/lotes', (req, res) => {
  res.status(201).type('json').write('[');
  setImmediate(() => res.end(`${JSON.stringify(charge())}]`));
});
app.post('/eventos', (req, res) => {
  res.type('text/event-stream').write(`data: ${JSON.stringify(charge())}\n\n`);
  setImmediate(() => res.end('data: fim\n\n'));
});

// The fourth argument, used or not, makes this an error handler.
app.use((err, req, res, next) => {
  if (res.headersSent) return next(err);
  res.status(err.status ?? 500).json({ erro: 'erro interno' });
});

const server = app.listen(Number(process.env.PORT ?? 8082), '127.0.0.1', (err) => {
  if (err) throw err;
  console.error(`express: listening on http://127.0.0.1:${server.address().port}`);
});
server.on('connection', () => connections++);
if (on('keep-alive')) server.keepAliveTimeout = Number(switches.get('keep-alive'));
