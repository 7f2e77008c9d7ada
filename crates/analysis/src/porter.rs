//! Porter's stemmer (M.F. Porter, "An algorithm for suffix stripping", 1980), as Lucene's
//! `PorterStemFilter` has it. tantivy brings Snowball's "English" stemmer, its successor, which stems
//! differently; Elasticsearch's `english` analyzer uses the original.

/// Stems a lowercased word in place. Words of at most two bytes, and words with non-ASCII characters, stay as they
/// are.
pub(super) fn stem(word: &mut String) {
    if word.len() <= 2 || !word.is_ascii() {
        return;
    }
    let mut stemmer = Stemmer { b: std::mem::take(word).into_bytes(), j: 0 };
    stemmer.step1();
    stemmer.step2();
    stemmer.step3();
    stemmer.step4();
    stemmer.step5();
    stemmer.step6();
    // Only ASCII was in it and only ASCII is put in.
    *word = stemmer.b.into_iter().map(char::from).collect();
}

/// State of the stemmer: `b` is the word so far, and `j` the length of the stem before the suffix found last.
struct Stemmer {
    b: Vec<u8>,
    j: usize,
}

impl Stemmer {
    fn is_consonant(&self, i: usize) -> bool {
        match self.b[i] {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => i == 0 || !self.is_consonant(i - 1),
            _ => true,
        }
    }

    /// Number of vowel-consonant sequences in the stem.
    fn measure(&self) -> usize {
        let mut count = 0;
        let mut previous_vowel = false;
        for i in 0..self.j {
            let consonant = self.is_consonant(i);
            count += usize::from(consonant && previous_vowel);
            previous_vowel = !consonant;
        }
        count
    }

    fn stem_has_vowel(&self) -> bool {
        (0..self.j).any(|i| !self.is_consonant(i))
    }

    /// Whether the word up to `len` ends with a doubled consonant.
    fn double_consonant(&self, len: usize) -> bool {
        len >= 2 && self.b[len - 1] == self.b[len - 2] && self.is_consonant(len - 1)
    }

    /// Whether the first `len` letters end in consonant, vowel, consonant, where the last is not w, x or y.
    fn cvc(&self, len: usize) -> bool {
        len >= 3
            && self.is_consonant(len - 1)
            && !self.is_consonant(len - 2)
            && self.is_consonant(len - 3)
            && !matches!(self.b[len - 1], b'w' | b'x' | b'y')
    }

    fn ends(&mut self, suffix: &str) -> bool {
        if self.b.len() > suffix.len() && self.b.ends_with(suffix.as_bytes()) {
            self.j = self.b.len() - suffix.len();
            return true;
        }
        false
    }

    fn set(&mut self, suffix: &str) {
        self.b.truncate(self.j);
        self.b.extend(suffix.bytes());
    }

    fn replace_if_measured(&mut self, suffix: &str) {
        if self.measure() > 0 {
            self.set(suffix);
        }
    }

    /// Step 1: removes plural endings, -ed and -ing.
    fn step1(&mut self) {
        if self.b.ends_with(b"s") {
            if self.ends("sses") {
                self.b.truncate(self.b.len() - 2);
            } else if self.ends("ies") {
                self.set("i");
            } else if self.b.len() >= 2 && self.b[self.b.len() - 2] != b's' {
                self.b.pop();
            }
        }
        if self.ends("eed") {
            if self.measure() > 0 {
                self.b.pop();
            }
        } else if (self.ends("ed") || self.ends("ing")) && self.stem_has_vowel() {
            self.b.truncate(self.j);
            if self.ends("at") {
                self.set("ate");
            } else if self.ends("bl") {
                self.set("ble");
            } else if self.ends("iz") {
                self.set("ize");
            } else if self.double_consonant(self.b.len()) {
                if !matches!(self.b.last(), Some(b'l' | b's' | b'z')) {
                    self.b.pop();
                }
            } else {
                self.j = self.b.len();
                if self.measure() == 1 && self.cvc(self.b.len()) {
                    self.b.push(b'e');
                }
            }
        }
    }

    /// Step 2: turns a final y into i if the stem has a vowel.
    fn step2(&mut self) {
        if self.ends("y") && self.stem_has_vowel() {
            self.set("i");
        }
    }

    /// Applies the first rule whose suffix matches: replaces the suffix if the stem is long enough.
    fn first_rule(&mut self, rules: &[(&str, &str)]) {
        for (suffix, replacement) in rules {
            if self.ends(suffix) {
                self.replace_if_measured(replacement);
                return;
            }
        }
    }

    /// Step 3: reduces double suffixes to single ones.
    fn step3(&mut self) {
        self.first_rule(&[
            ("ational", "ate"),
            ("tional", "tion"),
            ("enci", "ence"),
            ("anci", "ance"),
            ("izer", "ize"),
            ("bli", "ble"),
            ("alli", "al"),
            ("entli", "ent"),
            ("eli", "e"),
            ("ousli", "ous"),
            ("ization", "ize"),
            ("ation", "ate"),
            ("ator", "ate"),
            ("alism", "al"),
            ("iveness", "ive"),
            ("fulness", "ful"),
            ("ousness", "ous"),
            ("aliti", "al"),
            ("iviti", "ive"),
            ("biliti", "ble"),
            ("logi", "log"),
        ]);
    }

    fn step4(&mut self) {
        self.first_rule(&[
            ("icate", "ic"),
            ("ative", ""),
            ("alize", "al"),
            ("iciti", "ic"),
            ("ical", "ic"),
            ("ful", ""),
            ("ness", ""),
        ]);
    }

    /// Step 5: removes -ant, -ence and similar suffixes if the stem has at least two vowel-consonant sequences.
    fn step5(&mut self) {
        for suffix in [
            "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
            "ism", "ate", "iti", "ous", "ive", "ize",
        ] {
            if self.ends(suffix) {
                if suffix == "ion" && !matches!(self.b.get(self.j.wrapping_sub(1)), Some(b's' | b't')) {
                    return;
                }
                if self.measure() > 1 {
                    self.b.truncate(self.j);
                }
                return;
            }
        }
    }

    /// Step 6: removes a final -e, and reduces a final double l.
    fn step6(&mut self) {
        if self.b.last() == Some(&b'e') {
            self.j = self.b.len() - 1;
            let measure = self.measure();
            if measure > 1 || measure == 1 && !self.cvc(self.b.len() - 1) {
                self.b.pop();
            }
        }
        self.j = self.b.len().saturating_sub(1);
        if self.b.last() == Some(&b'l') && self.double_consonant(self.b.len()) && self.measure() > 1 {
            self.b.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn examples_of_the_paper() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "ti"),
            ("cats", "cat"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("bled", "bled"),
            ("motoring", "motor"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("troubled", "troubl"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("hissing", "hiss"),
            ("failing", "fail"),
            ("filing", "file"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("rational", "ration"),
            ("digitizer", "digit"),
            ("vietnamization", "vietnam"),
            ("predication", "predic"),
            ("operator", "oper"),
            ("feudalism", "feudal"),
            ("decisiveness", "decis"),
            ("hopefulness", "hope"),
            ("triplicate", "triplic"),
            ("formative", "form"),
            ("electrical", "electr"),
            ("goodness", "good"),
            ("revival", "reviv"),
            ("allowance", "allow"),
            ("inference", "infer"),
            ("airliner", "airlin"),
            ("adjustable", "adjust"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("effective", "effect"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controll", "control"),
            ("roll", "roll"),
            ("is", "is"),
            ("3.14", "3.14"),
        ] {
            let mut stemmed = word.to_owned();
            stem(&mut stemmed);
            assert_eq!(stemmed, expected, "{word}");
        }
    }
}
