//! Handles go where tests need them.

use k8s_fake_apiserver::*;

#[test]
fn handles_are_send_and_sync() {
    fn check<T: Send + Sync + 'static>() {}
    check::<FakeApiServer>();
    check::<FakeApiServerBuilder>();
    check::<FakeService>();
    check::<Replica>();
    check::<Faults>();
    check::<FaultRule>();
    check::<FaultHandle>();
    check::<Hold>();
    check::<Journal>();
    check::<Request>();
    check::<RequestMatcher>();
    check::<ResourceKind>();
    check::<Status>();
    check::<Error>();
    fn future<T: Send>(_: T) {}
    future(FakeApiServer::builder().start());
    fn body<T: Send>() {}
    body::<ResponseBody>();
}
