// Whether a text is English, which is all that the embedded models read. Only clear cases are told: a wrong warning is worse
// than none. For the command line and the console; it has no imports, as it runs in browsers too.

interface Language {
  readonly name: string;
  readonly words: readonly string[];
}

/** Words that nearly every English text has, whatever it is about. */
const ENGLISH =
  'the of and to in is that it was for on are as with his they at be this have from or had by not but what all were when we there can an your which their if will each about how up out them then she many some so these would other into has more her two him see than its who did get may'.split(
    ' ',
  );

const OTHERS: readonly Language[] = [
  {
    name: 'German',
    words:
      'der die das und ist nicht ein eine einen zu den mit sich auf für von dem des auch wird werden bei sind wie aus oder nach über kann wenn ich wir sie es im zum zur hat haben wurde durch'.split(
        ' ',
      ),
  },
  {
    name: 'French',
    words:
      'le la les des et est une un dans pour que qui sur pas au aux avec ce cette par plus ne du se il elle nous vous sont être ou mais leur'.split(
        ' ',
      ),
  },
  {
    name: 'Spanish',
    words:
      'el la los las y es una un en que por para con no se del al lo como más pero sus su fue ha son este esta cuando muy sin sobre'.split(
        ' ',
      ),
  },
  {
    name: 'Italian',
    words:
      'il lo la gli le e è una un di che per con non si del della nel alla sono più come anche ma questo questa dei delle'.split(
        ' ',
      ),
  },
  {
    name: 'Portuguese',
    words:
      'o os as e é uma um de que para com não se do da dos das no na em por mais como mas foi ao são seu sua'.split(
        ' ',
      ),
  },
  {
    name: 'Dutch',
    words:
      'de het een en is niet van dat op te zijn voor met die er aan ook als bij naar uit maar wordt door over dan nog'.split(
        ' ',
      ),
  },
];

const SCRIPTS: readonly (readonly [string, RegExp])[] = [
  ['Russian or another language in Cyrillic', /\p{Script=Cyrillic}/gu],
  ['Greek', /\p{Script=Greek}/gu],
  ['Arabic', /\p{Script=Arabic}/gu],
  ['Hebrew', /\p{Script=Hebrew}/gu],
  ['Japanese', /[\p{Script=Hiragana}\p{Script=Katakana}]/gu],
  ['Korean', /\p{Script=Hangul}/gu],
  ['Chinese', /\p{Script=Han}/gu],
  ['Hindi or another language in Devanagari', /\p{Script=Devanagari}/gu],
  ['Thai', /\p{Script=Thai}/gu],
];

/** Fewest words by which a language in Latin letters is told. */
const FEWEST_WORDS = 4;

const FUNCTION_WORDS = new Set([...ENGLISH, 'a', 'i', 'you', 'do', 'does', 'my', 'our', 'after', 'before']);

/** Whether an English word says nothing about what a text is about. */
export function isFunctionWord(word: string): boolean {
  return FUNCTION_WORDS.has(word.toLowerCase());
}

/** The language of a text if it is clearly another one than English. */
export function foreignLanguage(text: string): string | undefined {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  if (letters === 0) return undefined;
  for (const [name, script] of SCRIPTS) {
    if ((text.match(script)?.length ?? 0) > letters * 0.3) return name;
  }
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.length < FEWEST_WORDS) return undefined;
  const share = (list: readonly string[]): number => {
    const known = new Set(list);
    return words.filter((word) => known.has(word)).length / words.length;
  };
  const english = share(ENGLISH);
  const best = OTHERS.map(({ name, words: list }) => ({ name, share: share(list) })).sort(
    (a, b) => b.share - a.share,
  )[0];
  return best !== undefined && best.share >= 0.2 && best.share > english * 1.5 ? best.name : undefined;
}
