//! A cheap guess at whether a text is English, for models that read nothing else.

/// Most characters of a text that are looked at.
const CHARACTERS: usize = 1000;
/// Fewest words of Latin letters that are judged: a shorter text may be names, or words that languages share.
const WORDS: usize = 5;
/// Fewest frequent words of other languages that a text must have.
const FOREIGN_WORDS: usize = 2;

/// Frequent words of English that none of the other languages has as a frequent word.
const ENGLISH: [&str; 45] = [
    "and", "are", "as", "at", "be", "by", "can", "did", "does", "for", "from", "has", "have", "her", "his",
    "how", "if", "in", "is", "it", "its", "my", "not", "of", "on", "or", "than", "that", "the", "their",
    "then", "there", "they", "this", "to", "were", "what", "when", "where", "which", "who", "why", "with",
    "you", "your",
];
/// Frequent words of German, French, Spanish, Italian, Portuguese and Dutch that English does not have as well, as it has `war` and `per`.
const FOREIGN: [&str; 132] = [
    "aan", "ao", "au", "auch", "auf", "aux", "avec", "bei", "bij", "ce", "cette", "che", "chi", "comment",
    "como", "con", "cual", "cuál", "cómo", "da", "dans", "das", "dat", "de", "degli", "dei", "del", "della",
    "delle", "dello", "dem", "den", "der", "des", "di", "donde", "dos", "dove", "du", "dónde", "een", "ein",
    "eine", "einem", "einen", "einer", "el", "elle", "em", "er", "es", "est", "für", "gli", "het", "hoe",
    "ich", "il", "im", "ist", "la", "las", "le", "les", "lo", "los", "mit", "na", "naar", "nach", "nas",
    "ne", "nel", "nicht", "niet", "nos", "não", "oder", "onde", "ook", "op", "os", "ou", "où", "par", "para",
    "pas", "perché", "por", "pour", "pourquoi", "que", "quel", "quelle", "quem", "qui", "quien", "quoi",
    "qué", "se", "si", "sich", "sind", "sono", "sont", "su", "sur", "são", "um", "uma", "un", "una", "und",
    "une", "uno", "von", "voor", "waar", "waarom", "warum", "wat", "welche", "wer", "wie", "wird", "wo",
    "zijn", "zu", "zum", "zur", "è", "é",
];

/// Whether a text is most likely not English: most of its letters are not Latin, or it has frequent words of other languages, and more than
/// twice as many as of English.
pub(crate) fn seems_foreign(text: &str) -> bool {
    let end = text.char_indices().nth(CHARACTERS).map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    let (mut letters, mut others) = (0, 0);
    for letter in text.chars().filter(|character| character.is_alphabetic()) {
        letters += 1;
        others += usize::from(!is_latin(letter));
    }
    if others >= 2 && 2 * others > letters {
        return true;
    }
    let (mut words, mut english, mut foreign) = (0, 0, 0);
    for word in text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        let is_in = |list: &[&str]| usize::from(list.binary_search(&word.as_str()).is_ok());
        words += 1;
        english += is_in(&ENGLISH);
        foreign += is_in(&FOREIGN);
    }
    words >= WORDS && foreign >= FOREIGN_WORDS && foreign > 2 * english
}

fn is_latin(letter: char) -> bool {
    matches!(letter, '\0'..='\u{2FF}' | '\u{1E00}'..='\u{1EFF}' | '\u{FF21}'..='\u{FF5A}')
}

#[cfg(test)]
mod tests {
    use super::{ENGLISH, FOREIGN, seems_foreign};

    #[test]
    fn the_lists_can_be_searched() {
        assert!(ENGLISH.is_sorted() && FOREIGN.is_sorted());
        assert!(ENGLISH.iter().all(|word| !FOREIGN.contains(word)));
    }

    #[test]
    fn texts_of_other_languages_are_told_from_english() {
        for foreign in [
            "Wie kann ich das Dokument mit dem Drucker ausgeben?",
            "Où est la bibliothèque de la ville ?",
            "¿Dónde está la estación de tren más cercana?",
            "Come posso cambiare la lingua del programma?",
            "Como posso mudar o idioma do programa para o inglês?",
            "Hoe kan ik het wachtwoord van mijn rekening wijzigen?",
            "Где находится вокзал",
            "図書館はどこですか",
            "地图",
            "أين المحطة",
            "स्टेशन कहाँ है",
        ] {
            assert!(seems_foreign(foreign), "{foreign}");
        }
    }

    #[test]
    fn english_and_what_is_too_short_to_tell_are_not_foreign() {
        for other in [
            "",
            "12345 - 678",
            "\u{3c0}",
            "café",
            "Schadenfreude",
            "die Hard",
            "Rue de la Paix",
            "Bahnhof Straße",
            "how do I get to the Place de la Concorde",
            "the letters \u{3b1}, \u{3b2} and \u{3b3} stand for angles",
            "who wrote Der Ring des Nibelungen",
            "La La Land and El Camino are films",
            "Vietnam war casualties per capita",
            "World War deaths per country",
        ] {
            assert!(!seems_foreign(other), "{other}");
        }
    }

    #[test]
    fn only_the_beginning_is_looked_at() {
        let long = format!("{}{}", "the cat and the dog ".repeat(60), "и собака ".repeat(10_000));
        assert!(!seems_foreign(&long));
    }
}
