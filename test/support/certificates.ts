/** Certificates made with openssl, for one test. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './children.ts';

export interface Pem {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: Buffer;
  readonly key: Buffer;
}

export interface Authority {
  readonly ca: Pem;
  /** Signs a certificate for 127.0.0.1 and localhost, for both ends of a connection; with fewer than 0 days it has expired. */
  issue(commonName: string, names?: string, days?: number): Pem;
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' });
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

export function certificateAuthority(): Authority {
  const folder = temporaryFolder('certificates-');
  const pem = (name: string): Pem => {
    const certFile = join(folder, `${name}.crt`);
    const keyFile = join(folder, `${name}.key`);
    return { certFile, keyFile, cert: readFileSync(certFile), key: readFileSync(keyFile) };
  };
  const file = (name: string) => join(folder, name);
  openssl(
    'req',
    '-x509',
    ...NEW_KEY,
    '-days',
    '2',
    '-subj',
    '/CN=test CA',
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca.crt'),
  );
  return {
    ca: pem('ca'),
    issue(commonName, names = 'IP:127.0.0.1,DNS:localhost', days = 2) {
      const [key, csr, crt, ext] = ['key', 'csr', 'crt', 'ext'].map((kind) => file(`${commonName}.${kind}`)) as [
        string,
        string,
        string,
        string,
      ];
      writeFileSync(ext, `subjectAltName=${names}\nextendedKeyUsage=serverAuth,clientAuth\n`);
      openssl('req', ...NEW_KEY, '-subj', `/CN=${commonName}`, '-keyout', key, '-out', csr);
      const signer = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-CAcreateserial'];
      openssl('x509', '-req', '-in', csr, ...signer, '-days', String(days), '-extfile', ext, '-out', crt);
      return pem(commonName);
    },
  };
}
