const LINE_FEED = 10;

/**
 * The lines of a stream of UTF-8 as texts, without the line feeds between them.
 *
 * @param most bytes that a line may have: one without end would take all memory, or be longer than a string can be
 * @param tooLong makes the error for a longer one
 */
export async function* linesOf(
  stream: AsyncIterable<Buffer>,
  most: number,
  tooLong: () => Error,
): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      const line = chunk.subarray(from, end);
      yield (begun.length === 0 ? line : Buffer.concat([...begun, line])).toString();
      begun = [];
      length = 0;
      from = end + 1;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > most) throw tooLong();
  }
  if (length > 0) yield Buffer.concat(begun).toString();
}
