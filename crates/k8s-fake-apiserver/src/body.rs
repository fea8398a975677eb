//! Bodies of answers: bytes at once, or a stream of them.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};

type ByteStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The body of an answer. Its error is a connection that broke, as scripted by a fault.
pub struct ResponseBody(Inner);

enum Inner {
    Full(Option<Bytes>),
    Stream(ByteStream),
}

impl ResponseBody {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Full(Some(bytes.into()).filter(|b: &Bytes| !b.is_empty())))
    }

    pub(crate) fn stream(stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(stream)))
    }

    pub(crate) fn into_stream(self) -> ByteStream {
        match self.0 {
            Inner::Full(bytes) => Box::pin(futures_util::stream::iter(bytes.map(Ok))),
            Inner::Stream(stream) => stream,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Inner::Full(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Inner::Stream(stream) => stream.as_mut().poll_next(cx).map(|item| item.map(|b| b.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Inner::Full(_) => "ResponseBody(full)",
            Inner::Stream(_) => "ResponseBody(stream)",
        })
    }
}

/// How a scripted fault breaks a connection.
pub(crate) fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by a scripted fault")
}
