import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import test from 'ava';
import { startProxy } from '../support/proxy.ts';
import { until } from '../support/wait.ts';

test("a proxy's delay keeps the order of what passes, also when it changes or ends", async (t) => {
  let received = '';
  const server = createServer((socket) => {
    // The proxy resets what is left when it is closed.
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const proxy = await startProxy(`http://127.0.0.1:${port}`);
  const socket = connect({ port: proxy.port, host: '127.0.0.1', noDelay: true });
  t.teardown(async () => {
    socket.destroy();
    await proxy.close();
    server.close();
  });
  await once(socket, 'connect');
  let sent = '';
  for (const [i, delayMs] of [0, 80, 20, 0, 40, 0].entries()) {
    proxy.delay(delayMs);
    for (let n = 0; n < 5; n += 1) {
      const bytes = proxy.bytesUp;
      const text = `${i}.${n} `;
      sent += text;
      socket.write(text);
      await until(() => proxy.bytesUp > bytes, 'it to be on its way');
    }
  }
  await until(() => received.length === sent.length, 'all to arrive');
  t.is(received, sent);
});
