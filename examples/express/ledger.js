// The ledger is an append-only file of charges, a JSON object a line. It is the
// truth about what was charged: whoever audits counts its lines.
import { open, readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';

/** Opens the ledger `name`, which is made if it is not there. */
export async function openLedger(name) {
  const file = await open(name, 'a', 0o600);
  let last = Promise.resolve();
  return {
    /**
     * Charges a card, and resolves to the charge once it is on disk. A rejection
     * does not say that nothing was charged: the line may be there all the same.
     */
    charge(valor, cartao) {
      // Only the last four digits: a ledger is read by more people than a card.
      const made = { id: `pag_${randomUUID()}`, valor, cartao: cartao.slice(-4) };
      last = last.catch(() => {}).then(async () => {
        await file.appendFile(JSON.stringify(made) + '\n');
        await file.sync();
      });
      return last.then(() => made);
    },
    /** The whole ledger, as text. */
    read: () => readFile(name, 'utf8'),
  };
}
