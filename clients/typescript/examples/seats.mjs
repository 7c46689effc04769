import { Client, OutOfTokensError } from "samya";

const client = new Client({
  targets: (process.env.SAMYA_TARGETS ?? "http://127.0.0.1:8080").split(","),
  token: process.env.SAMYA_TOKEN,
});
try {
  const grant = await client.acquire("acme/seats", 3);
  console.log(`site ${grant.site} granted ${grant.tokens} seats`);
  const kept = (await client.acquireLease("acme/seats", 2, 30_000)).keep();
  // Work that needs the two seats ends early if kept.signal is aborted.
  await kept.stop();
  await kept.current.release();
  await client.release("acme/seats", grant.tokens);
} catch (e) {
  if (!(e instanceof OutOfTokensError)) throw e;
  console.log(`no seats: ask again in ${e.retryAfter} ms`);
} finally {
  client.close();
}
