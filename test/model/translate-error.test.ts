import test from 'ava';
import type { EphemeralError } from '../../src/core/errors.ts';
import { isAuthDisabled, isStaleToken, translateError } from '../../src/etcd/translate-error.ts';

const ENDPOINT = 'https://10.0.0.1:2379';

/** gRPC status, what etcd, Node or grpc-js says, and what becomes of it: a code, and `!` when it may pass by itself. */
const TABLE: readonly (readonly [number | undefined, string, string])[] = [
  [1, 'Cancelled on client', 'CONNECTION!'],
  [2, 'Stream removed', 'CONNECTION!'],
  [2, 'context canceled', 'CONNECTION!'],
  [4, 'Deadline exceeded after 0.5s,LB pick: 0.001s,remote_addr=10.0.0.1:2379', 'CONNECTION!'],
  [10, 'aborted', 'CONNECTION!'],
  [13, 'Received RST_STREAM with code 2 (Internal server error)', 'CONNECTION!'],
  [14, 'No connection established. Last error: Error: connect ECONNREFUSED 10.0.0.1:2379', 'CONNECTION!'],
  [14, 'Name resolution failed for target dns:nowhere:2379', 'CONNECTION!'],
  [14, 'Connection dropped', 'CONNECTION!'],
  [undefined, 'etcd ended the watch stream', 'CONNECTION!'],
  [14, 'etcdserver: leader changed', 'CONNECTION!'],
  [14, 'etcdserver: no leader', 'CONNECTION!'],
  [14, 'etcdserver: request timed out', 'CONNECTION!'],
  [14, 'etcdserver: request timed out, possibly due to previous leader failure', 'CONNECTION!'],
  [14, 'etcdserver: server stopped', 'CONNECTION!'],
  [14, 'etcdserver: rpc not supported for learner', 'CONNECTION!'],
  [8, 'etcdserver: too many requests', 'CONNECTION!'],
  [
    14,
    'Last error: Error: Client network socket disconnected before secure TLS connection was established',
    'CONNECTION!',
  ],
  [14, 'Last error: Error: self-signed certificate in certificate chain', 'CONNECTION'],
  [14, 'Last error: Error: unable to verify the first certificate', 'CONNECTION'],
  [
    14,
    "Last error: Error: Hostname/IP does not match certificate's altnames: IP: 10.0.0.1 is not in the list",
    'CONNECTION',
  ],
  [14, 'Last error: Error: certificate has expired', 'CONNECTION'],
  [14, 'error:0A000412:SSL routines:ssl3_read_bytes:sslv3 alert bad certificate:SSL alert number 42', 'CONNECTION'],
  [14, 'error:0A00010B:SSL routines:ssl3_get_record:wrong version number', 'CONNECTION'],
  [3, 'etcdserver: authentication failed, invalid user ID or password', 'UNAUTHENTICATED'],
  [9, 'etcdserver: user name not found', 'UNAUTHENTICATED'],
  [3, 'etcdserver: user name is empty', 'UNAUTHENTICATED'],
  [16, 'etcdserver: invalid auth token', 'UNAUTHENTICATED'],
  [3, 'etcdserver: revision of auth store is old', 'UNAUTHENTICATED'],
  [16, 'something else', 'UNAUTHENTICATED'],
  [7, 'etcdserver: permission denied', 'PERMISSION_DENIED'],
  [7, 'a proxy does not want this', 'PERMISSION_DENIED'],
  [3, 'etcdserver: request is too large', 'VALUE_TOO_LARGE'],
  [8, 'grpc: received message larger than max (2000000 vs. 1572864)', 'VALUE_TOO_LARGE'],
  [8, 'Received message larger than max (5000000 vs 4194304)', 'VALUE_TOO_LARGE'],
  [8, 'Attempted to send message with a size larger than 100', 'VALUE_TOO_LARGE'],
  [8, 'etcdserver: mvcc: database space exceeded', 'NO_SPACE!'],
  [11, 'etcdserver: mvcc: required revision has been compacted', 'COMPACTED'],
  [5, 'etcdserver: requested lease not found', 'LEASE_NOT_FOUND'],
  [11, 'etcdserver: mvcc: required revision is a future revision', 'STORE'],
  [3, 'etcdserver: duplicate key given in txn request', 'STORE'],
  [3, 'etcdserver: too many operations in txn request', 'STORE'],
  [9, 'etcdserver: lease already exists', 'STORE'],
  [13, 'Request message serialization failure: illegal value', 'STORE'],
  [12, 'unknown service etcdserverpb.KV', 'STORE'],
  [15, 'etcdserver: corrupt cluster', 'STORE'],
];

function shown(error: EphemeralError): string {
  return error.code + (error.retryable ? '!' : '');
}

for (const [code, details, wanted] of TABLE) {
  test(`status ${code}, "${details}", is ${wanted}`, (t) => {
    const error = translateError({ code, details }, { endpoint: ENDPOINT });
    t.is(shown(error), wanted);
    if (wanted !== 'COMPACTED') {
      t.true(error.message.includes(ENDPOINT), 'the message names the endpoint');
      t.is((error.cause as { details: string }).details, details, 'the cause is kept');
    }
  });
}

test('the message does for details, as grpc-js repeats them there', (t) => {
  t.is(
    shown(translateError({ message: '5 NOT_FOUND: etcdserver: requested lease not found' }, { endpoint: ENDPOINT })),
    'LEASE_NOT_FOUND',
  );
  t.is(shown(translateError({}, { endpoint: ENDPOINT })), 'CONNECTION!');
});

test('a deadline says how long was waited', (t) => {
  t.regex(translateError({ code: 4, details: 'x' }, { endpoint: ENDPOINT, timeoutMs: 500 }).message, /within 500 ms/);
});

test('a failed TLS handshake says what to do, without the noise of grpc-js and OpenSSL', (t) => {
  const told = (words: string) => {
    const details = `No connection established. Last error: Error: ${words} (2026-01-02T03:04:05.678Z). Resolution note: `;
    return translateError({ code: 14, details }, { endpoint: ENDPOINT }).message;
  };
  const alert = (words: string, number: number) =>
    `80AC:error:0A000412:SSL routines:ssl3_read_bytes:${words}:../deps/ssl/record/rec_layer_s3.c:1601:SSL alert number ${number}`;
  t.regex(told('certificate has expired'), /renew it \(certificate has expired\)$/);
  t.regex(
    told(alert('tlsv13 alert certificate required', 116)),
    /was shown none.*\(tlsv13 alert certificate required\)$/,
  );
  t.regex(told(alert('sslv3 alert certificate expired', 45)), /our client certificate has expired/);
  t.regex(told(alert('tlsv1 alert unknown ca', 48)), /did not sign our client certificate/);
  t.regex(told(alert('sslv3 alert bad certificate', 42)), /refuses our client certificate, or was shown none/);
  t.regex(told('self-signed certificate in certificate chain'), /check the CA/);
  t.regex(told(alert('wrong version number', 0)), /check the CA, .* \(wrong version number\)$/);
});

test('only what a new token may heal is a stale token', (t) => {
  const stale = TABLE.filter(([code, details]) => isStaleToken({ code, details })).map(([, details]) => details);
  t.deepEqual(stale, [
    'etcdserver: user name is empty',
    'etcdserver: invalid auth token',
    'etcdserver: revision of auth store is old',
  ]);
});

test('authentication that is switched off is known by its own words', (t) => {
  t.true(isAuthDisabled({ code: 9, details: 'etcdserver: authentication is not enabled' }));
  t.false(isAuthDisabled({ code: 9, details: 'etcdserver: user name not found' }));
});
