/** A text that several stores have in common, as over a cluster: `server()` is how one of them reaches it. */
export function inCommon() {
  let text: string | undefined;
  let version = 0;
  const server = () => {
    let last = 0;
    return {
      path: 'the common list',
      isShared: true,
      read: () => {
        last = version;
        return Promise.resolve(text);
      },
      isCurrent: () => Promise.resolve(last === version),
      replace: async (pieces: AsyncIterable<Uint8Array>) => {
        const all: Uint8Array[] = [];
        for await (const piece of pieces) all.push(piece);
        if (last !== version) return false;
        text = Buffer.concat(all).toString();
        last = version += 1;
        return true;
      },
    };
  };
  return { server };
}
