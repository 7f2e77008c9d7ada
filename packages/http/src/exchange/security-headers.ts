/** Seconds for which a browser is to remember that this server speaks TLS: a year. */
const REMEMBER_TLS = 31_536_000;

/**
 * Headers of every answer that keep a browser from making something else of it. What a page may do besides, it says itself
 * (see `console.ts`).
 */
export function securityHeaders(overTls: boolean): readonly (readonly [string, string])[] {
  return [
    ['X-Content-Type-Options', 'nosniff'],
    ...(overTls ? ([['Strict-Transport-Security', `max-age=${String(REMEMBER_TLS)}`]] as const) : []),
  ];
}
