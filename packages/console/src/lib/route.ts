// Where the page is: a screen and its parameters, in the address behind `#`. The key never is.
import { useEffect, useState } from 'preact/hooks';

export interface Route {
  readonly screen: string;
  readonly params: URLSearchParams;
}

export function current(): Route {
  const [screen = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { screen, params: new URLSearchParams(query) };
}

export function address(screen: string, params: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(params).filter((entry): entry is [string, string] => !!entry[1]);
  const query = new URLSearchParams(given).toString();
  return `#/${screen}${query === '' ? '' : `?${query}`}`;
}

export function go(screen: string, params?: Readonly<Record<string, string | undefined>>): void {
  location.hash = address(screen, params);
}

/** Changes the parameters without a new entry in the history. */
export function remember(screen: string, params: Readonly<Record<string, string | undefined>>): void {
  history.replaceState(null, '', address(screen, params));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const changed = (): void => {
      setRoute(current());
    };
    addEventListener('hashchange', changed);
    return () => {
      removeEventListener('hashchange', changed);
    };
  }, []);
  return route;
}
