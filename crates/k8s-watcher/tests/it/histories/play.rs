//! How a history is played: step by step, looked at after each, and then until all is well.

use k8s_types::ChangeStats;
use k8s_watcher::{ErrorClass, Status};
use tokio::time::Instant;

#[cfg(feature = "cached")]
use super::cached::Cached;
use super::cluster::Cluster;
use super::many::Many;
use super::plan::{History, Kind, Read, Setup, Step};
use super::single::Single;
use super::story::Story;
use crate::support::{ms, secs, settle};

/// Who is looked at while a history happens.
pub(crate) trait Subject: Sized {
    /// Begins to watch.
    fn begin(setup: &Setup, cluster: &Cluster) -> Self;

    /// Checks what holds at any moment.
    fn look(&mut self, cluster: &Cluster);

    fn relist(&self);

    /// Somebody reads, and checks what comes of it.
    fn read(&mut self, _: Read, _: &Cluster) {}

    async fn sync(&self);

    /// Whether what is shown or told is what the server has.
    fn is_current(&self, cluster: &Cluster) -> bool;

    /// What happened so far, by the watcher's own word.
    fn status(&self) -> Status;

    /// What a person wants to know when it does not get there.
    fn trouble(&self) -> String;

    /// Ends, and checks what can be checked only then.
    async fn end(self, setup: &Setup, cluster: &Cluster);
}

/// Plays a history to its end.
///
/// # Panics
///
/// At the first divergence from the model.
pub(crate) fn play(history: &History, story: &Story) {
    // The jitter of the watcher's engines comes from here.
    fastrand::seed(history.setup.seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        match history.kind {
            Kind::Many => run::<Many>(history, story).await,
            Kind::Single => run::<Single>(history, story).await,
            #[cfg(feature = "cached")]
            Kind::Cached => run::<Cached>(history, story).await,
            #[cfg(not(feature = "cached"))]
            Kind::Cached => {}
        }
    });
}

async fn run<S: Subject>(history: &History, story: &Story) {
    let setup = &history.setup;
    story.tell(|| format!("{setup:?}"));
    let mut cluster = Cluster::start(setup, story.clone()).await;
    let mut subject = S::begin(setup, &cluster);
    for step in &history.steps {
        story.tell(|| format!("{step:?} at {:?}", cluster.elapsed()));
        story.count(step.kind(), 1);
        match step {
            Step::Relist => {
                cluster.lists_by_hand += 1;
                subject.relist();
            }
            Step::Read(read) => subject.read(*read, &cluster),
            Step::Pass(time) => {
                settle(ms(*time)).await;
                cluster.tell_requests();
            }
            about_servers => cluster.carry_out(about_servers),
        }
        subject.look(&cluster);
    }
    cluster.heal();
    subject.sync().await;
    // What hangs is given up after a while, and tells its part then; what would hang or break later ends.
    settle(secs(setup.idle_seconds + 200)).await;
    cluster.server.close_watches();
    // What hangs since a moment ago does not: it is given up like the others.
    settle(secs(setup.idle_seconds + 60)).await;
    arrive(&mut subject, &mut cluster, setup).await;
    check_bounds(&subject.status().changes, &cluster, setup);
    follow(&mut subject, &mut cluster, setup).await;
    check_bounds(&subject.status().changes, &cluster, setup);
    cluster.check_requests(setup, history.kind);
    let may_go_back = cluster.was_restored || setup.has_replica || history.steps.iter().any(Step::is_replay);
    let backwards = subject.status().failures.of(ErrorClass::Backwards);
    assert!(may_go_back || backwards == 0, "taken for a restore: {:?}", subject.status());
    subject.end(setup, &cluster).await;
}

/// Waits until what is shown is what the server has, and slow callbacks have been told.
async fn arrive(subject: &mut impl Subject, cluster: &mut Cluster, setup: &Setup) {
    let begin = Instant::now();
    let mut looks = 0;
    while !subject.is_current(cluster) {
        cluster.tell_requests();
        assert!(begin.elapsed() < secs(1_800), "it never shows what the server has:\n{}", subject.trouble());
        settle(secs(1 + looks / 60 * 30)).await;
        looks += 1;
        if cluster.was_unreadable && looks % 60 == 59 {
            // What could not be read and is not written again is found only by looking again.
            cluster.lists_by_hand += 1;
            subject.relist();
        }
        subject.look(cluster);
    }
    settle(secs(2) + ms(3 * setup.slowness)).await;
    cluster.tell_requests();
    subject.look(cluster);
}

/// With nothing wrong each change is counted, and once.
async fn follow(subject: &mut impl Subject, cluster: &mut Cluster, setup: &Setup) {
    let (before, from) = (subject.status(), cluster.truth().moment());
    for write in &setup.afterwards {
        cluster.story.tell(|| format!("{write:?} at {:?}", cluster.elapsed()));
        cluster.write(*write);
        settle(ms(setup.seed % 70)).await;
        subject.look(cluster);
    }
    arrive(subject, cluster, setup).await;
    let status = subject.status();
    if status.relists == before.relists && !cluster.was_unreadable {
        let (before, after) = (before.changes, status.changes);
        let told = (after.created - before.created, after.modified - before.modified, after.deleted - before.deleted);
        let happened = cluster.truth().changes(setup.view, |at| at.moment > from);
        assert_eq!(told, happened, "created, modified, deleted with nothing wrong");
    }
}

/// What was told of happened: never more than that.
fn check_bounds(counts: &ChangeStats, cluster: &Cluster, setup: &Setup) {
    if setup.view.counts_versions {
        // A list from scratch counts everything as modified where the content is not there to be compared.
        return;
    }
    let (created, modified, deleted) = cluster.truth().changes(setup.view, |_| true);
    let happened = created + modified + deleted;
    assert!(counts.created <= created, "{counts:?} of {created} created");
    assert!(counts.deleted <= deleted, "{counts:?} of {deleted} deleted");
    assert!(counts.total() <= happened, "{counts:?} of {happened}");
}
