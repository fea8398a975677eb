//! What goes wrong between a server and its clients, as plain data.

use fastrand::Rng;
use k8s_fake_apiserver::{Any, FakeApiServer, FaultHandle, FaultRule, Get, List, RequestMatcher, Status, Watch};
use serde_json::{Value, json};

use crate::support::{MAPS, ms};

/// A fault and the requests that it hits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) on: On,
    pub(crate) what: What,
    pub(crate) times: u64,
    /// So many lines or items pass first, where it happens inside a body.
    pub(crate) after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum On {
    Lists,
    Watches,
    Reads,
    Anything,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A refusal: 429, 500, 503 and the like.
    Refusal(u16),
    RetryAfter(u32),
    Gone(Gone),
    /// The connection breaks, before an answer or within it.
    Drop,
    Reset,
    ResetAtByte(u64),
    /// Nothing more comes, or nothing at all.
    Silence,
    Hang,
    HangAtByte(u64),
    /// What comes, comes late: perhaps after the answer to a later request.
    Delay(u64),
    Pause(u64),
    /// The body ends as if it were complete: between two lines, or within one, or within a character.
    End,
    EndAtByte(u64),
    EndInCharacter,
    /// Pieces of so many bytes, wherever that falls in characters.
    Chunks(usize),
    /// 200 and nothing; 200 and a page of a proxy.
    Empty,
    Html,
    /// An ERROR event.
    Error(u16),
    /// A line that is no event.
    Stray(usize),
    /// A reconnect that begins at an older place: what was seen comes again, in its old order.
    Replay(u64),
    /// Objects are shown in a form that cannot be held.
    Unreadable,
}

/// The ways in which a server says that a version is too old.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Gone {
    /// An event of a watch; HTTP 410 for anything else.
    Event,
    /// The same with the reason that older servers gave.
    OlderEvent,
    /// Without any reason.
    BareEvent,
    Http,
    OlderHttp,
    BareHttp,
}

const GONE: [Gone; 6] = [Gone::Event, Gone::OlderEvent, Gone::BareEvent, Gone::Http, Gone::OlderHttp, Gone::BareHttp];

/// Lines that are no events. The last ones end within a character, and within an escaped one.
const STRAY: [&[u8]; 8] = [
    b"garbage",
    b"{",
    b"[]",
    b"7",
    br#"{"type":"ADDED","object":{}}"#,
    b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"m0\",\"namespace\":\"a\xf0\x9f",
    b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"m0\xe2\x82\"}}}",
    br#"{"type":"MODIFIED","object":{"metadata":{"name":"m0","namespace":"a\ud83d"}}}"#,
];

impl Fault {
    pub(crate) fn random(rng: &mut Rng, may_read: bool) -> Self {
        let what = What::random(rng);
        let on = match rng.u32(0..8) {
            _ if matches!(what, What::Stray(_) | What::Replay(_) | What::EndInCharacter) => On::Watches,
            // A server that says of an object that there is none is believed.
            _ if what == What::Refusal(404) => On::Watches,
            0 | 1 => On::Lists,
            2 | 3 => On::Anything,
            4 | 5 if may_read => On::Reads,
            _ => On::Watches,
        };
        Self { on, what, times: rng.u64(1..3), after: rng.u64(0..12) }
    }

    /// Whether objects may be known in an older form than the server has, until they are shown once more.
    pub(crate) fn hides(&self) -> bool {
        self.what == What::Unreadable
    }

    /// Makes it happen.
    pub(crate) fn put(&self, server: &FakeApiServer) -> FaultHandle {
        let requests: RequestMatcher = match self.on {
            On::Lists => List::of(MAPS),
            On::Watches => Watch::of(MAPS),
            On::Reads => Get::of(MAPS),
            On::Anything => Any::request(),
        };
        let rule = server.faults().on(requests).times(self.times).after(self.after);
        match &self.what {
            What::Refusal(code) => rule.status(*code),
            What::RetryAfter(seconds) => rule.status(Status::too_many_requests(*seconds)),
            What::Gone(gone) => gone.put(rule),
            What::Drop => rule.drop_connection(),
            What::Reset => rule.reset(),
            What::ResetAtByte(at) => rule.reset_at_byte(*at),
            What::Silence => rule.no_answer(),
            What::Hang => rule.hang(),
            What::HangAtByte(at) => rule.hang_at_byte(*at),
            What::Delay(millis) => rule.delay(ms(*millis)),
            What::Pause(millis) => rule.pause(ms(*millis)),
            What::End => rule.end(),
            What::EndAtByte(at) => rule.end_at_byte(*at),
            What::EndInCharacter => rule.body("application/json", half_a_character()),
            What::Chunks(size) => rule.chunks(*size),
            What::Empty => rule.body("application/json", ""),
            What::Html => rule.body("text/html", "<html>\n<body>Bad gateway</body>\n</html>\n"),
            What::Error(code) => rule.error(*code),
            What::Stray(which) => rule.line(STRAY[*which % STRAY.len()]),
            What::Replay(revisions) => rule.replay(*revisions),
            // In a part that references have too.
            What::Unreadable => rule.edit(|object| {
                object["metadata"]["labels"]["app"] = (0..200).fold(Value::Null, |inner, _| json!([inner]));
            }),
        }
    }

    /// The same with smaller numbers.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        let fewer = (self.times > 1).then(|| Self { times: 1, ..self.clone() });
        let sooner = (self.after > 0).then(|| Self { after: self.after / 2, ..self.clone() });
        fewer.into_iter().chain(sooner).collect()
    }
}

impl What {
    fn random(rng: &mut Rng) -> Self {
        let code = rng.choice([429, 500, 503, 504, 403, 404, 408, 409]).unwrap_or(500);
        let magnitude = rng.u32(4..17);
        let late = rng.u64(0..1 << magnitude);
        match rng.u32(0..26) {
            0 | 1 => Self::Refusal(code),
            2 => Self::RetryAfter(rng.u32(0..9)),
            3 | 4 => Self::Gone(rng.choice(GONE).unwrap_or(Gone::Event)),
            5 => Self::Drop,
            6 => Self::Reset,
            7 => Self::ResetAtByte(rng.u64(0..5_000)),
            8 => Self::Silence,
            9 => Self::Hang,
            10 => Self::HangAtByte(rng.u64(0..5_000)),
            11 => Self::Delay(late),
            12 => Self::Pause(late),
            13 => Self::End,
            14 => Self::EndAtByte(rng.u64(0..5_000)),
            15 => Self::EndInCharacter,
            16 | 17 => Self::Chunks(rng.usize(1..100)),
            18 => Self::Empty,
            19 => Self::Html,
            20 => Self::Error(code),
            21 => Self::Stray(rng.usize(0..STRAY.len())),
            22..25 => Self::Replay(rng.u64(1..30)),
            _ => Self::Unreadable,
        }
    }

    /// What kind of fault it is, for counting.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Refusal(429) => "429",
            Self::Refusal(500) => "500",
            Self::Refusal(503) => "503",
            Self::Refusal(_) => "another refusal",
            Self::RetryAfter(_) => "429 with a time",
            Self::Gone(Gone::Event) => "410 as an event",
            Self::Gone(Gone::OlderEvent) => "410 as an event, Gone",
            Self::Gone(Gone::BareEvent) => "410 as an event, bare",
            Self::Gone(Gone::Http) => "410",
            Self::Gone(Gone::OlderHttp) => "410, Gone",
            Self::Gone(Gone::BareHttp) => "410, bare",
            Self::Drop => "a connection dropped",
            Self::Reset | Self::ResetAtByte(_) => "a connection broken within an answer",
            Self::Silence | Self::Hang | Self::HangAtByte(_) => "a hang",
            Self::Delay(_) | Self::Pause(_) => "a late answer",
            Self::End => "an end",
            Self::EndAtByte(_) => "truncated JSON",
            Self::EndInCharacter => "an end within a character",
            Self::Chunks(_) => "small pieces",
            Self::Empty => "an empty answer",
            Self::Html => "a page of a proxy",
            Self::Error(_) => "an error event",
            Self::Stray(_) => "a stray line",
            Self::Replay(_) => "a replay",
            Self::Unreadable => "unreadable objects",
        }
    }

    /// All kinds.
    pub(crate) const KINDS: [&str; 25] = [
        "429",
        "500",
        "503",
        "another refusal",
        "429 with a time",
        "410 as an event",
        "410 as an event, Gone",
        "410 as an event, bare",
        "410",
        "410, Gone",
        "410, bare",
        "a connection dropped",
        "a connection broken within an answer",
        "a hang",
        "a late answer",
        "an end",
        "truncated JSON",
        "an end within a character",
        "small pieces",
        "an empty answer",
        "a page of a proxy",
        "an error event",
        "a stray line",
        "a replay",
        "unreadable objects",
    ];
}

impl Gone {
    fn put(self, rule: FaultRule) -> FaultHandle {
        let older = Status::new(410, "Gone", "too old resource version: 1 (2)");
        let bare = Status::new(410, "", "");
        match self {
            Self::Event => rule.gone(),
            Self::OlderEvent => rule.error(older),
            Self::BareEvent => rule.error(bare),
            Self::Http => rule.gone_http(),
            Self::OlderHttp => rule.status(older),
            Self::BareHttp => rule.status(bare),
        }
    }
}

/// A watch that ends within the second of a character's bytes, in an event that would be believed if it were whole.
fn half_a_character() -> Vec<u8> {
    let event = r#"{"type":"MODIFIED","object":{"metadata":{"name":"m0","namespace":"a","labels":{"app":"½"#;
    event.as_bytes()[..event.len() - 1].to_vec()
}
