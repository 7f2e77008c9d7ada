// Something that is asked for when a screen opens, and again after a while.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export interface Loaded<T> {
  readonly value: T | undefined;
  readonly error: string | undefined;
  readonly reload: () => void;
}

/** Loads now, whenever one of `deps` changes, and every `every` milliseconds while the page is seen. */
export function useLoad<T>(load: () => Promise<T>, deps: readonly unknown[], every?: number): Loaded<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<string>();
  const latest = useRef(0);
  const reload = useCallback(() => {
    const turn = (latest.current += 1);
    load().then(
      (found) => {
        if (turn !== latest.current) return;
        setValue(() => found);
        setError(undefined);
      },
      (failure: unknown) => {
        if (turn === latest.current) setError((failure as Error).message);
      },
    );
    // The caller says what the load depends on.
  }, [...deps]);
  useEffect(() => {
    reload();
    if (every === undefined) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, every);
    return () => {
      clearInterval(timer);
    };
  }, [reload, every]);
  return { value, error, reload };
}
