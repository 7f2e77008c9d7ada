//! Time zones that this server knows.

/// Whether a text is an offset from UTC, or a name of UTC.
pub fn is_offset(zone: &str) -> bool {
    if matches!(zone, "Z" | "z" | "UTC" | "GMT") {
        return true;
    }
    let Some(digits) = zone.strip_prefix(['+', '-']) else { return false };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str, most: u8| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u8>().is_ok_and(|n| n <= most)
    };
    number(hours, 18) && number(minutes, 59)
}
