/** Names that Kubernetes gives to the environment of every container, whatever their values: here for a Service `sparrow` or `sparrow-…`. */
const NAMES = [
  /^SPARROW_(?:[A-Z0-9_]+_)?SERVICE_HOST$/,
  /^SPARROW_(?:[A-Z0-9_]+_)?SERVICE_PORT(?:_[A-Z0-9_]+)?$/,
  /^SPARROW_(?:[A-Z0-9_]+_)?PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/,
];

/** The one such name that is a setting of Sparrow as well is told by its value. */
const PORT = /^SPARROW_(?:[A-Z0-9_]+_)?PORT$/;
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/**
 * Whether a variable is a service link: Kubernetes (and Docker, for linked containers) tells each container the addresses of the
 * services that there are, in variables that begin with the service's name.
 */
export function isServiceLink(name: string, value: string): boolean {
  return NAMES.some((pattern) => pattern.test(name)) || (PORT.test(name) && ADDRESS.test(value));
}
