//! The light stemmers that Elasticsearch's language analyzers use where Snowball's are too strong: Jacques
//! Savoy's for European languages ("Light Stemming Approaches for the French, Portuguese, German and
//! Hungarian Languages", and his reports to CLEF), and Larkey, Ballesteros and Connell's for Arabic. Words come
//! in lower case. Lengths count characters.

/// A word as a list of characters, with the operations that the rules of all languages use.
struct Word(Vec<char>);

impl Word {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn ends(&self, suffix: &str) -> bool {
        let mut end = self.0.iter().rev();
        suffix.chars().rev().all(|c| end.next() == Some(&c))
    }

    fn ends_in(&self, suffixes: &[&str]) -> bool {
        suffixes.iter().any(|suffix| self.ends(suffix))
    }

    /// The character `place` places from the end (1 is the last); NUL if the word is shorter.
    fn back(&self, place: usize) -> char {
        self.0.len().checked_sub(place).map_or('\0', |at| self.0[at])
    }

    fn cut(&mut self, count: usize) {
        self.0.truncate(self.0.len().saturating_sub(count));
    }

    /// Replaces the last `count` characters.
    fn swap(&mut self, count: usize, with: &str) {
        self.cut(count);
        self.0.extend(with.chars());
    }

    /// Applies the first rule whose suffix matches a word longer than the rule's bound; returns whether there was
    /// one. A rule is the bound, the suffix, the number of characters to replace, and their replacement.
    fn first_rule(&mut self, rules: &[(usize, &str, usize, &str)]) -> bool {
        for &(longer_than, suffix, count, with) in rules {
            if self.len() > longer_than && self.ends(suffix) {
                self.swap(count, with);
                return true;
            }
        }
        false
    }

    fn fold(&mut self, plain: fn(char) -> char) {
        self.0.iter_mut().for_each(|c| *c = plain(*c));
    }
}

fn with(text: &mut String, change: impl FnOnce(&mut Word)) {
    let mut word = Word(text.chars().collect());
    change(&mut word);
    text.clear();
    text.extend(word.0);
}

/// Removes the accent from a vowel; other characters are unchanged.
fn plain_vowel(c: char) -> char {
    match c {
        'à' | 'á' | 'â' | 'ä' => 'a',
        'ò' | 'ó' | 'ô' | 'ö' => 'o',
        'è' | 'é' | 'ê' | 'ë' => 'e',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        other => other,
    }
}

pub(super) fn spanish(text: &mut String) {
    with(text, |word| {
        if word.len() < 5 {
            return;
        }
        word.fold(plain_vowel);
        if word.ends("eses") {
            word.cut(2);
        } else if word.ends("ces") {
            word.swap(3, "z");
        } else if word.ends_in(&["os", "as", "es"]) {
            word.cut(2);
        } else if word.ends_in(&["o", "a", "e"]) {
            word.cut(1);
        }
    });
}

pub(super) fn italian(text: &mut String) {
    with(text, |word| {
        if word.len() < 6 {
            return;
        }
        word.fold(plain_vowel);
        if word.ends_in(&["ie", "he", "hi", "ii", "ia", "io"]) {
            word.cut(2);
        } else if word.ends_in(&["e", "i", "a", "o"]) {
            word.cut(1);
        }
    });
}

pub(super) fn portuguese(text: &mut String) {
    with(text, |word| {
        if word.len() < 4 {
            return;
        }
        portuguese_plural(word);
        if word.len() > 3 && word.ends("a") {
            portuguese_feminine(word);
        }
        if word.len() > 4 && word.ends_in(&["e", "a", "o"]) {
            word.cut(1);
        }
        word.fold(|c| match c {
            'ã' => 'a',
            'õ' => 'o',
            'ç' => 'c',
            other => plain_vowel(other),
        });
    });
}

fn portuguese_plural(word: &mut Word) {
    if word.len() > 4 && word.ends_in(&["res", "ses", "les", "zes"]) {
        return word.cut(2);
    }
    word.first_rule(&[
        (3, "ns", 2, "m"),
        (4, "eis", 3, "el"),
        (4, "éis", 3, "el"),
        (4, "ais", 2, "l"),
        (4, "óis", 3, "ol"),
        (4, "is", 1, "l"),
        (3, "ões", 3, "ão"),
        (3, "ães", 3, "ão"),
        (6, "mente", 5, ""),
        (3, "s", 1, ""),
    ]);
}

fn portuguese_feminine(word: &mut Word) {
    word.first_rule(&[
        (7, "inha", 1, "o"),
        (7, "iaca", 1, "o"),
        (7, "eira", 1, "o"),
        (6, "osa", 1, "o"),
        (6, "ica", 1, "o"),
        (6, "ida", 1, "o"),
        (6, "ada", 1, "o"),
        (6, "iva", 1, "o"),
        (6, "ama", 1, "o"),
        (6, "ona", 3, "ão"),
        (6, "ora", 1, ""),
        (6, "esa", 3, "ês"),
        (6, "na", 1, "o"),
    ]);
}

pub(super) fn german(text: &mut String) {
    with(text, |word| {
        word.fold(|c| if matches!(c, 'è' | 'é' | 'ê' | 'ë') { c } else { plain_vowel(c) });
        // Only behind these does a final s or st belong to the ending.
        let before_s = |c| matches!(c, 'b' | 'd' | 'f' | 'g' | 'h' | 'k' | 'l' | 'm' | 'n' | 't');
        if word.len() > 5 && word.ends("ern") {
            word.cut(3);
        } else if word.len() > 4 && word.ends_in(&["em", "en", "er", "es"]) {
            word.cut(2);
        } else if word.len() > 3 && (word.ends("e") || word.ends("s") && before_s(word.back(2))) {
            word.cut(1);
        }
        if word.len() > 5 && word.ends("est") {
            word.cut(3);
        } else if word.len() > 4 && (word.ends_in(&["er", "en"]) || word.ends("st") && before_s(word.back(3)))
        {
            word.cut(2);
        }
    });
}

/// The `minimal_german` stemmer, which only removes plural endings.
pub(super) fn minimal_german(text: &mut String) {
    with(text, |word| {
        if word.len() < 5 {
            return;
        }
        word.fold(|c| match c {
            'ä' => 'a',
            'ö' => 'o',
            'ü' => 'u',
            other => other,
        });
        if word.len() > 6 && word.ends("nen") {
            return word.cut(3);
        }
        if word.len() > 5 && word.ends_in(&["en", "se", "es", "er"]) {
            return word.cut(2);
        }
        if word.ends_in(&["n", "e", "s", "r"]) {
            word.cut(1);
        }
    });
}

pub(super) fn french(text: &mut String) {
    with(text, |word| {
        if word.len() > 5 && word.ends("x") {
            if word.ends("aux") && word.back(4) != 'e' {
                word.swap(2, "l");
            } else {
                word.cut(1);
            }
        }
        for letter in ["x", "s"] {
            if word.len() > 3 && word.ends(letter) {
                word.cut(1);
            }
        }
        french_suffix(word);
        french_norm(word);
    });
}

fn french_suffix(word: &mut Word) {
    if word.first_rule(&[(9, "issement", 7, "r"), (8, "issant", 5, "r")]) {
        // `finissement` and `finissant` to `finir`: what stands before the r is its i.
        return;
    }
    if word.len() > 6 && word.ends("ement") {
        word.cut(4);
        if word.len() > 3 && word.ends("ive") {
            word.swap(2, "f");
        }
        return;
    }
    if word.first_rule(&[
        (11, "ficatrice", 7, "er"),
        (10, "ficateur", 6, "er"),
        (9, "catrice", 7, "quer"),
        (8, "cateur", 6, "quer"),
        (8, "atrice", 6, "er"),
        (7, "ateur", 5, "er"),
    ]) {
        return;
    }
    word.first_rule(&[(6, "trice", 4, "eur")]);
    if word.first_rule(&[
        (5, "ième", 4, ""),
        (7, "teuse", 3, "r"),
        (6, "teur", 2, "r"),
        (5, "euse", 2, ""),
        (8, "ère", 3, "er"),
        (7, "ive", 2, "f"),
        (4, "folle", 3, "u"),
        (4, "molle", 3, "u"),
        (9, "nnelle", 5, ""),
        (9, "nnel", 3, ""),
    ]) {
        return;
    }
    word.first_rule(&[(4, "ète", 3, "et")]);
    if word.len() > 8 && word.ends("ique") {
        word.cut(4);
    }
    if word.first_rule(&[(8, "esse", 3, ""), (7, "inage", 3, "")]) {
        return;
    }
    if word.len() > 9 && word.ends("isation") {
        word.cut(7);
        if word.len() > 5 && word.ends("ual") {
            word.swap(2, "el");
        }
        return;
    }
    word.first_rule(&[(9, "isateur", 7, ""), (8, "ation", 5, ""), (8, "ition", 5, "")]);
}

fn french_norm(word: &mut Word) {
    if word.len() > 4 {
        word.fold(|c| match c {
            'à' | 'á' | 'â' => 'a',
            'ô' => 'o',
            'è' | 'é' | 'ê' => 'e',
            'ù' | 'û' => 'u',
            'î' => 'i',
            'ç' => 'c',
            other => other,
        });
        word.0.dedup_by(|a, b| a == b && a.is_alphabetic());
    }
    if word.len() > 4 && word.ends("ie") {
        word.cut(2);
    }
    if word.len() > 4 {
        for letter in ["r", "e", "e"] {
            if word.ends(letter) {
                word.cut(1);
            }
        }
        if word.back(1) == word.back(2) && word.back(1).is_alphabetic() {
            word.cut(1);
        }
    }
}

pub(super) fn minimal_french(text: &mut String) {
    with(text, |word| {
        if word.len() < 6 {
            return;
        }
        if word.ends("x") {
            if word.ends("aux") {
                word.swap(2, "l");
            } else {
                word.cut(1);
            }
            return;
        }
        for letter in ["s", "r", "e", "é"] {
            if word.ends(letter) {
                word.cut(1);
            }
        }
        if word.back(1) == word.back(2) && word.back(1).is_alphabetic() {
            word.cut(1);
        }
    });
}

/// The `minimal_english` stemmer, which only removes plural endings: Harman's "S-stemmer".
pub(super) fn minimal_english(text: &mut String) {
    with(text, |word| {
        if word.len() < 3 || !word.ends("s") || matches!(word.back(2), 'u' | 's') {
            return;
        }
        if word.ends("es") {
            if word.len() > 3 && word.ends("ies") && !matches!(word.back(4), 'a' | 'e') {
                return word.swap(3, "y");
            }
            if matches!(word.back(3), 'i' | 'a' | 'o' | 'e') {
                return;
            }
        }
        word.cut(1);
    });
}

pub(super) fn swedish(text: &mut String) {
    with(text, |word| {
        if word.len() > 4 && word.ends("s") {
            word.cut(1);
        }
        if word.len() > 7 && word.ends_in(&["elser", "heten"]) {
            return word.cut(5);
        }
        if word.len() > 6 && word.ends_in(&["arne", "erna", "ande", "else", "aste", "orna", "aren"]) {
            return word.cut(4);
        }
        if word.len() > 5 && word.ends_in(&["are", "ast", "het"]) {
            return word.cut(3);
        }
        if word.len() > 4 && word.ends_in(&["ar", "er", "or", "en", "at", "te", "et"]) {
            return word.cut(2);
        }
        if word.len() > 3 && matches!(word.back(1), 't' | 'a' | 'e' | 'n') {
            word.cut(1);
        }
    });
}

pub(super) fn bulgarian(text: &mut String) {
    with(text, |word| {
        if word.len() < 4 {
            return;
        }
        if word.len() > 5 && word.ends("ища") {
            return word.cut(3);
        }
        // Articles.
        if word.len() > 6 && word.ends("ият") {
            word.cut(3);
        } else if word.len() > 5 && word.ends_in(&["ът", "то", "те", "та", "ия"])
            || word.len() > 4 && word.ends("ят")
        {
            word.cut(2);
        }
        bulgarian_plural(word);
        if word.len() > 3 {
            if word.ends("я") {
                word.cut(1);
            }
            if word.ends_in(&["а", "о", "е"]) {
                word.cut(1);
            }
        }
        if word.len() > 4 && word.ends("ен") {
            word.swap(2, "н");
        }
        if word.len() > 5 && word.back(2) == 'ъ' {
            let last = word.back(1);
            word.cut(2);
            word.0.push(last);
        }
    });
}

fn bulgarian_plural(word: &mut Word) {
    if word.len() > 6 {
        if word.ends("овци") {
            return word.cut(3);
        }
        if word.ends("ове") {
            return word.cut(3);
        }
        if word.ends("еве") {
            return word.swap(3, "й");
        }
    }
    if word.len() > 5 {
        if word.ends("ища") {
            return word.cut(3);
        }
        if word.ends("та") {
            return word.cut(2);
        }
        if word.ends("ци") {
            return word.swap(2, "к");
        }
        if word.ends("зи") {
            return word.swap(2, "г");
        }
        if word.back(3) == 'е' && word.ends("и") {
            let consonant = word.back(2);
            word.swap(3, "я");
            word.0.push(consonant);
            return;
        }
    }
    if word.len() > 4 {
        if word.ends("си") {
            return word.swap(2, "х");
        }
        if word.ends("и") {
            word.cut(1);
        }
    }
}

pub(super) fn arabic(text: &mut String) {
    with(text, |word| {
        const PREFIXES: [&str; 7] = ["ال", "وال", "بال", "كال", "فال", "لل", "و"];
        const SUFFIXES: [&str; 10] = ["ها", "ان", "ات", "ون", "ين", "يه", "ية", "ه", "ة", "ي"];
        for prefix in PREFIXES {
            let length = prefix.chars().count();
            // A conjunction needs more behind it than an article.
            let least = if length == 1 { 4 } else { length + 2 };
            if word.len() >= least && word.0.iter().copied().zip(prefix.chars()).all(|(a, b)| a == b) {
                word.0.drain(..length);
                break;
            }
        }
        for suffix in SUFFIXES {
            let length = suffix.chars().count();
            if word.len() >= length + 2 && word.ends(suffix) {
                word.cut(length);
            }
        }
    });
}
