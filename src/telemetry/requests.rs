//! Counts what is asked of a cluster, and ends what is not answered.
//!
//! A layer below the client sees every request, whoever makes it. What a request is, is read off its method and path
//! alone (`Asked::of`).

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::time::{Instant, timeout};
use tower::{BoxError, Layer, Service};

use super::{
    label::{Answer, Side, Verb, Write},
    pace::PaceMetrics,
};

/// How long a request may wait for its answer to begin. API servers give up on their own part after a minute. Watches
/// are ended by those who watch.
const DEADLINE: Duration = Duration::from_secs(65);

/// Counts the requests to one side. Clones count together.
#[derive(Debug, Clone)]
pub struct Requests {
    side: Side,
    families: Families,
    pace: PaceMetrics,
    follows: Arc<Follows>,
}

#[derive(Debug, Clone)]
struct Families {
    requests: Family<RequestLabels, Counter>,
    in_flight: Family<SideLabels, Gauge>,
    durations: Family<SideLabels, Histogram>,
    writes: Family<WriteLabels, Counter>,
}

/// When a list or a watch was last begun, in milliseconds after the origin; zero before the first.
#[derive(Debug)]
struct Follows {
    origin: Instant,
    last: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    side: Side,
    verb: Verb,
    answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct SideLabels {
    pub(super) side: Side,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    write: Write,
}

impl Requests {
    /// For the hub and for the spoke.
    pub(super) fn pair(registry: &mut Registry) -> (Self, Self) {
        let families = Families {
            requests: Family::default(),
            in_flight: Family::default(),
            durations: Family::new_with_constructor(|| {
                Histogram::new([0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0])
            }),
            writes: Family::default(),
        };
        registry.register(
            "requests",
            "Requests to the API servers",
            families.requests.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Requests that wait for an answer to begin",
            families.in_flight.clone(),
        );
        registry.register_with_unit(
            "request_duration",
            "How long it takes until an answer begins, watches apart",
            Unit::Seconds,
            families.durations.clone(),
        );
        registry.register(
            "writes",
            "Writes that an API server has accepted",
            families.writes.clone(),
        );
        for &side in Side::ALL {
            drop(families.in_flight.get_or_create(&SideLabels { side }));
            drop(families.durations.get_or_create(&SideLabels { side }));
            for &verb in Verb::ALL {
                let answer = Answer::Done;
                let labels = RequestLabels { side, verb, answer };
                drop(families.requests.get_or_create(&labels));
            }
        }
        for &write in Write::ALL {
            drop(families.writes.get_or_create(&WriteLabels { write }));
        }
        let pace = PaceMetrics::new(registry);
        let on = |side| Self {
            side,
            families: families.clone(),
            pace: pace.on(side),
            follows: Arc::new(Follows {
                origin: Instant::now(),
                last: AtomicU64::new(0),
            }),
        };
        (on(Side::Hub), on(Side::Spoke))
    }

    /// How long ago a list or a watch was last begun; `None` before the first. A watch ends and begins again every few
    /// minutes, whatever happens to it, so one that does not has nobody who follows it.
    pub fn since_followed(&self) -> Option<Duration> {
        let last = self.follows.last.load(Ordering::Relaxed);
        let now = self.follows.origin.elapsed();
        (last > 0).then(|| now.saturating_sub(Duration::from_millis(last)))
    }

    /// What is counted of those that wait before they are sent.
    pub fn pace(&self) -> PaceMetrics {
        self.pace.clone()
    }

    /// What a request to this side is.
    pub(crate) fn asked<B>(&self, request: &Request<B>) -> Asked {
        Asked::of(self.side, request)
    }

    fn begin(&self, asked: Asked) -> UnderWay {
        if matches!(asked.verb, Verb::List | Verb::Watch) {
            let now = self.follows.origin.elapsed().as_millis();
            let now = u64::try_from(now).unwrap_or(u64::MAX).max(1);
            self.follows.last.store(now, Ordering::Relaxed);
        }
        let in_flight = self
            .families
            .in_flight
            .get_or_create_owned(&SideLabels { side: self.side });
        in_flight.inc();
        UnderWay {
            requests: self.clone(),
            asked,
            in_flight,
            since: Instant::now(),
        }
    }
}

/// One request. One that is dropped is not in flight any more, either.
struct UnderWay {
    requests: Requests,
    asked: Asked,
    in_flight: Gauge,
    since: Instant,
}

impl UnderWay {
    fn end(self, answer: Answer) {
        let (side, verb) = (self.requests.side, self.asked.verb);
        let families = &self.requests.families;
        families
            .requests
            .get_or_create(&RequestLabels { side, verb, answer })
            .inc();
        if verb != Verb::Watch {
            families
                .durations
                .get_or_create(&SideLabels { side })
                .observe(self.since.elapsed().as_secs_f64());
        }
        if answer == Answer::Done
            && let Some(write) = self.asked.write
        {
            families.writes.get_or_create(&WriteLabels { write }).inc();
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, service: S) -> Counted<S> {
        Counted {
            service,
            requests: self.clone(),
        }
    }
}

/// A client whose requests are counted.
#[derive(Debug, Clone)]
pub struct Counted<S> {
    service: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let asked = self.requests.asked(&request);
        let under_way = self.requests.begin(asked);
        let is_watch = asked.verb == Verb::Watch;
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = if is_watch {
                answer.await.map_err(Into::into)
            } else {
                match timeout(DEADLINE, answer).await {
                    Ok(answer) => answer.map_err(Into::into),
                    Err(_) => Err(Late.into()),
                }
            };
            under_way.end(
                answer
                    .as_ref()
                    .map_or(Answer::Unanswered, |answer| answer_of(answer.status())),
            );
            answer
        })
    }
}

/// There was no answer in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer after {DEADLINE:?}")]
pub(crate) struct Late;

fn answer_of(status: StatusCode) -> Answer {
    match status.as_u16() {
        404 | 409 | 410 => Answer::Missed,
        429 => Answer::Throttled,
        400..500 => Answer::Refused,
        500.. => Answer::Failed,
        _ => Answer::Done,
    }
}

/// What a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) verb: Verb,
    /// What it is for, if it changes anything.
    pub(crate) write: Option<Write>,
}

impl Asked {
    fn of<B>(side: Side, request: &Request<B>) -> Self {
        let place = Place::of(request.uri().path());
        let content = request.headers().get(CONTENT_TYPE);
        let is_apply =
            content.is_some_and(|kind| kind.as_bytes().starts_with(b"application/apply"));
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.split('&').any(|part| part == "watch=true");
        let verb = match *request.method() {
            Method::POST => Verb::Create,
            Method::PATCH if is_apply => Verb::Apply,
            Method::PATCH => Verb::Patch,
            Method::PUT => Verb::Update,
            Method::DELETE => Verb::Delete,
            _ if is_watch => Verb::Watch,
            _ if place.is_collection() => Verb::List,
            _ => Verb::Get,
        };
        let write = write_of(side, verb, &place);
        Self { verb, write }
    }
}

fn write_of(side: Side, verb: Verb, place: &Place<'_>) -> Option<Write> {
    let plain = match verb {
        Verb::Get | Verb::List | Verb::Watch => return None,
        Verb::Create => Write::Create,
        Verb::Apply => Write::Apply,
        Verb::Patch | Verb::Update => Write::Adjust,
        Verb::Delete => Write::Delete,
    };
    match (side, place.resource, place.subresource) {
        // Questions that are asked by creating something that is not kept.
        (_, resource, _) if resource.ends_with("reviews") => None,
        (_, "serviceaccounts", "token") => None,
        (_, "leases", _) if place.name == "work-agent-lock" => Some(Write::Lease),
        (Side::Hub, "manifestworks", "status") => Some(Write::Status),
        (Side::Hub, "manifestworks", _) => Some(Write::Finalizer),
        (Side::Hub, "events", _) => Some(Write::Event),
        (Side::Spoke, "appliedmanifestworks", _) => Some(Write::Record),
        _ => Some(plain),
    }
}

/// What a path names; empty where it names nothing.
#[derive(Debug, Default, PartialEq, Eq)]
struct Place<'a> {
    resource: &'a str,
    name: &'a str,
    subresource: &'a str,
}

impl<'a> Place<'a> {
    /// `/api/v1/…` and `/apis/GROUP/VERSION/…`, with or without `namespaces/NAME/`. A server may be behind a prefix.
    fn of(path: &'a str) -> Self {
        let mut parts = path
            .split('/')
            .skip_while(|part| *part != "api" && *part != "apis");
        let before = match parts.next() {
            Some("api") => 1,
            _ => 2,
        };
        let rest: Vec<&str> = parts.skip(before).filter(|part| !part.is_empty()).collect();
        let rest = match rest.as_slice() {
            // A namespace's own subresources are not resources inside it.
            ["namespaces", _, "status" | "finalize"] => &rest[..],
            ["namespaces", _, inside @ ..] if !inside.is_empty() => inside,
            whole => whole,
        };
        let part = |at: usize| rest.get(at).copied().unwrap_or_default();
        Self {
            resource: part(0),
            name: part(1),
            subresource: part(2),
        }
    }

    fn is_collection(&self) -> bool {
        !self.resource.is_empty() && self.name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Side, method, content and path; then verb and purpose.
    const TABLE: &str = "
        spoke GET    -     /apis/apps/v1                                                get    -
        spoke GET    -     /api/v1/namespaces                                           list   -
        spoke GET    -     /api/v1/namespaces/a                                         get    -
        spoke GET    -     /api/v1/namespaces/a/configmaps                              list   -
        spoke GET    -     /api/v1/configmaps?limit=5&watch=true                        watch  -
        spoke GET    -     /prefix/api/v1/configmaps                                    list   -
        spoke PATCH  apply /api/v1/namespaces/a/configmaps/b?force=true                 apply  apply
        spoke PATCH  apply /api/v1/namespaces/a                                         apply  apply
        spoke PATCH  merge /api/v1/namespaces/a/configmaps/b                            patch  adjust
        spoke PUT    -     /api/v1/namespaces/a/finalize                                update adjust
        spoke POST   -     /apis/apps/v1/namespaces/a/deployments                       create create
        spoke DELETE -     /apis/apps/v1/namespaces/a/deployments/b                     delete delete
        spoke POST   -     /apis/work.ocm.io/v1/appliedmanifestworks                    create record
        spoke PATCH  merge /apis/work.ocm.io/v1/appliedmanifestworks/x/status           patch  record
        spoke POST   -     /apis/authorization.k8s.io/v1/subjectaccessreviews           create -
        spoke PATCH  apply /apis/coord.io/v1/namespaces/a/leases/work-agent-lock        apply  lease
        spoke PATCH  apply /apis/coord.io/v1/namespaces/a/leases/theirs                 apply  apply
        hub   GET    -     /apis/work.ocm.io/v1/namespaces/edge/manifestworks           list   -
        hub   PATCH  merge /apis/work.ocm.io/v1/namespaces/edge/manifestworks/x         patch  finalizer
        hub   PATCH  merge /apis/work.ocm.io/v1/namespaces/edge/manifestworks/x/status  patch  status
        hub   POST   -     /apis/events.k8s.io/v1/namespaces/edge/events                create event
    ";

    #[test]
    fn requests_are_told_apart() {
        for row in TABLE.lines().filter(|row| !row.trim().is_empty()) {
            let cells: Vec<&str> = row.split_whitespace().collect();
            let [side, method, content, uri, verb, write] = cells[..] else {
                panic!("{row}");
            };
            let side = Side::ALL.iter().find(|found| found.as_str() == side);
            let content = match content {
                "apply" => "application/apply-patch+yaml",
                "merge" => "application/merge-patch+json",
                _ => "application/json",
            };
            let request = Request::builder()
                .method(method)
                .uri(uri)
                .header(CONTENT_TYPE, content)
                .body(())
                .unwrap();
            let asked = Asked::of(*side.unwrap(), &request);
            let found = (asked.verb.as_str(), asked.write.map_or("-", Write::as_str));
            assert_eq!(found, (verb, write), "{row}");
        }
    }

    #[test]
    fn answers_are_told_apart() {
        let table = [
            (200, Answer::Done),
            (201, Answer::Done),
            (403, Answer::Refused),
            (404, Answer::Missed),
            (409, Answer::Missed),
            (422, Answer::Refused),
            (429, Answer::Throttled),
            (500, Answer::Failed),
            (503, Answer::Failed),
        ];
        for (status, answer) in table {
            assert_eq!(
                answer_of(StatusCode::from_u16(status).unwrap()),
                answer,
                "{status}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_answered_ends_and_what_is_dropped_is_not_in_flight() {
        let (_, metrics) = super::super::metrics::Metrics::new();
        let requests = metrics.spoke;
        let side = SideLabels { side: Side::Spoke };
        let silent = |_: Request<()>| std::future::pending::<Result<Response<()>, BoxError>>();
        let mut client = requests.layer(tower::service_fn(silent));
        let ask = |uri: &str| Request::get(uri).body(()).unwrap();
        let in_flight = || requests.families.in_flight.get_or_create(&side).get();

        assert_eq!(requests.since_followed(), None);
        let watch = client.call(ask("/api/v1/pods?watch=true"));
        assert_eq!(in_flight(), 1);
        assert!(
            timeout(DEADLINE * 10, watch).await.is_err(),
            "it is a watch"
        );
        assert_eq!(in_flight(), 0);

        let error = client.call(ask("/api/v1/pods")).await.unwrap_err();
        assert_eq!(error.to_string(), "no answer after 65s");
        assert_eq!(
            (in_flight(), requests.since_followed()),
            (0, Some(DEADLINE))
        );
        let labels = RequestLabels {
            side: Side::Spoke,
            verb: Verb::List,
            answer: Answer::Unanswered,
        };
        assert_eq!(requests.families.requests.get_or_create(&labels).get(), 1);
    }
}
