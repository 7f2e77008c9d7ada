// Dark or light: as the system has it, unless somebody said otherwise in this browser.
import { useEffect, useState } from 'preact/hooks';

export type Theme = 'auto' | 'light' | 'dark';

const STORED = 'sparrow-theme';
const NEXT: Readonly<Record<Theme, Theme>> = { auto: 'dark', dark: 'light', light: 'auto' };

function stored(): Theme {
  const value = localStorage.getItem(STORED);
  return value === 'light' || value === 'dark' ? value : 'auto';
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(stored);
  useEffect(() => {
    const root = document.documentElement;
    if (theme === 'auto') {
      localStorage.removeItem(STORED);
      delete root.dataset['theme'];
    } else {
      localStorage.setItem(STORED, theme);
      root.dataset['theme'] = theme;
    }
  }, [theme]);
  return [
    theme,
    () => {
      setTheme(NEXT[theme]);
    },
  ];
}
