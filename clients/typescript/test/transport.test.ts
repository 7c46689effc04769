import assert from "node:assert/strict";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { type AddressInfo, type Socket, createServer as createRawServer } from "node:net";
import { type TestContext, test } from "node:test";

import { FetchTransport } from "../src/fetch.js";
import { type Outcome, outcomeOf } from "../src/outcome.js";
import { type HttpRequest, NodeTransport, type Transport, linesOf } from "../src/transport.js";

const post: HttpRequest = { method: "POST", path: "/v1/entities/a:acquire", headers: { "content-type": "application/json" }, body: '{"tokens":1}', expects: ["tokens"] };
const get: HttpRequest = { method: "GET", path: "/v1/entities/a:watch", headers: {}, body: undefined, expects: [] };

/** A server of HTTP; it is closed with the test. */
async function serve(t: TestContext, handler: (req: IncomingMessage, res: ServerResponse) => void): Promise<URL> {
  const server = createServer(handler);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

function json(res: ServerResponse, body: string, status = 200, type = "application/json"): void {
  res.writeHead(status, { "content-type": type }).end(body);
}

async function send(t: TestContext, target: URL, transport: Transport = new NodeTransport()): Promise<Outcome> {
  t.after(() => transport.close());
  return transport.send(target, post, new AbortController().signal);
}

for (const [name, make] of [["node", () => new NodeTransport()], ["fetch", () => new FetchTransport()]] as const) {
  test(`${name}: answers are read, and connections kept`, async (t) => {
    const peers = new Set<number | undefined>();
    const target = await serve(t, (req, res) => {
      peers.add(req.socket.remotePort);
      req.on("data", () => undefined).on("end", () => json(res, '{"tokens":1}'));
    });
    const transport = make();
    for (let i = 0; i < 3; i++) {
      assert.deepEqual(await send(t, target, transport), { kind: "done", body: { tokens: 1 } });
    }
    // When fetch keeps a connection is up to fetch.
    assert.ok(name === "fetch" || peers.size === 1);
  });

  test(`${name}: a broken connection leaves the outcome unknown`, async (t) => {
    const target = await serve(t, (req) => req.on("data", () => undefined).on("end", () => req.socket.destroy()));
    assert.equal((await send(t, target, make())).kind, "lost");
    const half = await serve(t, (_, res) => {
      res.writeHead(200, { "content-length": "100" }).write("{");
      setImmediate(() => res.destroy());
    });
    assert.equal((await send(t, half, make())).kind, "lost");
  });

  test(`${name}: a watch is a stream of lines`, async (t) => {
    const target = await serve(t, (_, res) => {
      res.writeHead(200, { "content-type": "application/x-ndjson" });
      res.write('{"a":1}\n{"a"');
      setImmediate(() => res.write(":2}\n"));
    });
    const transport = make();
    t.after(() => transport.close());
    const stream = await transport.open(target, get, new AbortController().signal);
    assert.ok("lines" in stream);
    const lines: string[] = [];
    for await (const line of stream.lines) {
      if (lines.push(line) === 2) {
        break;
      }
    }
    stream.close();
    assert.deepEqual(lines, ['{"a":1}', '{"a":2}']);
  });
}

test("a refused connection proves that nothing was sent", async (t) => {
  const target = await serve(t, () => undefined);
  target.port = "1";
  assert.equal((await send(t, target)).kind, "unsent");
});

test("a handshake that fails proves that nothing was sent", async (t) => {
  const target = await serve(t, () => undefined);
  target.protocol = "https:";
  assert.equal((await send(t, new URL(`https://${target.host}`))).kind, "unsent");
});

test("an aborted try is lost once its request may have left", async (t) => {
  const sockets: Socket[] = [];
  const server = createRawServer((s) => sockets.push(s));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    sockets.forEach((s) => s.destroy());
    server.close();
  });
  const target = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const end = new AbortController();
  const transport = new NodeTransport();
  t.after(() => transport.close());
  const got = transport.send(target, post, end.signal);
  await new Promise<void>((done) => server.once("connection", (s) => s.once("data", () => done())));
  end.abort();
  assert.equal((await got).kind, "lost");
});

test("answers are judged by what they prove", () => {
  const kinds = (status: number, type: string, text: string): string => outcomeOf(status, type, text, ["tokens"]).kind;
  assert.equal(kinds(200, "application/json", '{"tokens":1}'), "done");
  assert.equal(kinds(200, "application/json", '{"other":1}'), "lost");
  assert.equal(kinds(200, "text/html", "<p>hello</p>"), "lost");
  assert.equal(kinds(200, "application/json", "[]"), "lost");
  assert.equal(kinds(502, "text/html", "Bad gateway"), "lost");
  assert.equal(kinds(503, "application/json", '{"reason":"OVERLOADED"}'), "lost");
  assert.equal(kinds(503, "application/problem+json; charset=utf-8", '{"reason":"OVERLOADED"}'), "refused");
  assert.deepEqual(outcomeOf(400, "application/problem+json", JSON.stringify({
    title: "Invalid field", reason: "INVALID_FIELD", errors: [{ field: "tokens", problem: "must be at least 1" }], retry_after_ms: 5, tried: ["us"], attempt: 2,
  })), {
    kind: "refused",
    refusal: {
      reason: "INVALID_FIELD", message: "Invalid field", entity: undefined, requestId: undefined, site: undefined, lacking: undefined, left: undefined,
      limit: undefined, retryAfter: 5, violations: [{ field: "tokens", problem: "must be at least 1" }], attempt: 2, tried: ["us"],
    },
  });
});

test("no line or answer grows without bound", async (t) => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      yield Buffer.alloc(1 << 18, 0x61);
    }
  }
  await assert.rejects(async () => {
    for await (const _ of linesOf(endless())) {
      assert.fail("a line without an end");
    }
  }, /more than/);
  const target = await serve(t, (_, res) => {
    res.writeHead(200);
    const more = (): void => {
      if (!res.destroyed && res.write(Buffer.alloc(1 << 18, 0x20))) {
        setImmediate(more);
      } else {
        res.once("drain", more);
      }
    };
    more();
  });
  assert.equal((await send(t, target)).kind, "lost");
});
