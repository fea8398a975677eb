//! A token in a file that somebody else replaces.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

use super::bearer;

/// A token is taken from the file again when it has been used for as long as this.
const MAX_AGE: Duration = Duration::from_secs(60);

/// No token is longer: a header of this size is refused by every server.
const MAX_LENGTH: u64 = 1 << 20;

pub(super) struct TokenFile {
    path: PathBuf,
    header: HeaderValue,
    read_at: Instant,
    /// The last try to read it again failed, and was reported.
    failing: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read the token file {}", path.display())]
pub(super) struct OpenError {
    path: PathBuf,
    source: io::Error,
}

impl TokenFile {
    pub(super) fn open(path: impl Into<PathBuf>, now: Instant) -> Result<Self, OpenError> {
        let path = path.into();
        match read(&path) {
            Ok(header) => Ok(Self { path, header, read_at: now, failing: false }),
            Err(source) => Err(OpenError { path, source }),
        }
    }

    /// The token, at most a minute old.
    pub(super) fn current(&mut self, now: Instant) -> HeaderValue {
        if now.saturating_duration_since(self.read_at) >= MAX_AGE {
            self.read_again(now);
        }
        self.header.clone()
    }

    /// The token that is in the file now, unless it has been read again since `refused` was used.
    pub(super) fn after_refusal(&mut self, refused: &HeaderValue, now: Instant) -> HeaderValue {
        if self.header == *refused {
            self.read_again(now);
        }
        self.header.clone()
    }

    /// A file that cannot be read, or is being written, leaves the token as it was.
    fn read_again(&mut self, now: Instant) {
        self.read_at = now;
        match read(&self.path) {
            Ok(header) => {
                self.header = header;
                self.failing = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "cannot read the token file again; the last token is used on");
                }
            }
        }
    }
}

fn read(path: &PathBuf) -> io::Result<HeaderValue> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_LENGTH).read_to_string(&mut text)?;
    bearer(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no token in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn c81_the_file_is_read_again_after_a_minute_or_a_refusal_and_never_loses_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let start = Instant::now();
        std::fs::write(&path, "one\n").unwrap();
        let mut file = TokenFile::open(&path, start).unwrap();
        let mut current = |at: u64| file.current(start + seconds(at)).to_str().unwrap().to_owned();
        assert_eq!(current(0), "Bearer one");
        std::fs::write(&path, "two").unwrap();
        assert_eq!(current(59), "Bearer one");
        assert_eq!(current(60), "Bearer two");
        // Empty, broken and absent files, one after the other, each when its minute has come.
        for (i, content) in [b"" as &[u8], b" \n", b"\xFF\xFE", b"a\nb"].into_iter().enumerate() {
            std::fs::write(&path, content).unwrap();
            assert_eq!(current(120 + 60 * i as u64), "Bearer two", "{content:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(current(400), "Bearer two");
        std::fs::write(&path, "three").unwrap();
        assert_eq!(current(459), "Bearer two", "a failed try counts too");
        assert_eq!(current(460), "Bearer three");

        std::fs::write(&path, "four").unwrap();
        let (three, now) = (HeaderValue::from_static("Bearer three"), start + seconds(461));
        assert_eq!(file.after_refusal(&three, now), "Bearer four");
        std::fs::write(&path, "five").unwrap();
        assert_eq!(file.after_refusal(&three, now), "Bearer four", "somebody else's refusal of the old one");
        assert!(file.current(now).is_sensitive());
    }

    #[test]
    fn a_file_without_a_token_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let told = || {
            let error = TokenFile::open(&path, Instant::now()).err().unwrap();
            format!("{error}: {}", error.source)
        };
        assert!(told().starts_with(&format!("cannot read the token file {}: ", path.display())));
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(told(), format!("cannot read the token file {}: no token in it", path.display()));
    }
}
