//! What must hold for any bytes from a server. Run by the fuzz targets, and by the tests here over their seeds and what
//! chance makes of them.

mod list;
mod refusal;
#[cfg(test)]
mod tests;
mod watch;

pub use self::{list::check_list, refusal::check_refusal, watch::check_watch};

/// Sizes of the portions in which a body may come, besides all at once.
fn portions(body: &[u8]) -> [usize; 3] {
    [1, 3, body.len() / 3 + 2]
}

/// Whether a reason why an object is skipped is one of ours, which tell of places and never of what stands there.
fn is_our_reason(reason: &str) -> bool {
    let is_number = |text: &str| text.parse::<usize>().is_ok();
    let is_place =
        |text: &str| text.split_once(" column ").is_some_and(|(line, column)| is_number(line) && is_number(column));
    reason.strip_prefix("invalid JSON at line ").is_some_and(is_place)
        || [
            "no metadata.name",
            "JSON ends in the middle of a value",
            "nested deeper than 127 levels",
            "not a JSON object",
            "number out of range",
        ]
        .contains(&reason)
}

/// What only `serde_json` knows: texts with escapes that it may refuse, and names that it treats as its own.
fn is_special(json: &[u8]) -> bool {
    [&br"\u"[..], b"$serde_json:"].iter().any(|piece| json.windows(piece.len()).any(|w| w == *piece))
}
