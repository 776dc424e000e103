//! The layer around a server that answers as a case says, in paused time.

use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::join_all};
use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, service_fn};

use super::paced::{Paced, PacedClient};
use crate::{
    runtime::pace::Pace,
    telemetry::{label::Hold, metrics::Metrics, requests::Requests},
};

type Answered = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;
type Client = PacedClient<Answered>;

/// A client of a server that answers the n-th request so, the first being 1.
fn client(answer: impl Fn(usize, Request<Body>) -> Answered + Send + 'static) -> Client {
    counted(&Metrics::new().1.spoke, answer)
}

fn counted(
    requests: &Requests,
    answer: impl Fn(usize, Request<Body>) -> Answered + Send + 'static,
) -> Client {
    let (count, paced) = (AtomicUsize::new(0), Paced::new(requests));
    let server = service_fn(move |request| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        answer(number, request)
    });
    paced.layer(server)
}

fn answered(status: u16, retry_after: Option<u32>) -> Answered {
    let mut answer = Response::new(Body::from(b"words".to_vec()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    Box::pin(async { Ok(answer) })
}

fn silence() -> Answered {
    Box::pin(pending())
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

fn lease() -> Request<Body> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/a/leases/work-agent-lock";
    Request::put(path).body(Body::empty()).unwrap()
}

async fn status_of(client: &mut Client, request: Request<Body>) -> (u16, Duration) {
    let start = Instant::now();
    let answer = client.call(request).await.unwrap();
    (answer.status().as_u16(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn what_is_turned_away_is_asked_again_with_the_same_words() {
    let requests = Metrics::new().1.spoke;
    let mut client = counted(&requests, |number, request| {
        Box::pin(async move {
            let body = request.into_body().collect_bytes().await?;
            assert_eq!(body, "manifest");
            match number {
                1 => answered(429, Some(2)).await,
                2 => answered(429, None).await,
                3 => answered(503, Some(3)).await,
                _ => answered(200, None).await,
            }
        })
    });
    let request = Request::post("/api/v1/namespaces/a/configmaps");
    let request = request.body(Body::from(b"manifest".to_vec())).unwrap();
    let (status, took) = status_of(&mut client, request).await;
    assert_eq!(status, 200);
    let (asked, spread) = (Duration::from_secs(6), Duration::from_millis(3005));
    assert!(took >= asked && took <= asked + spread, "{took:?}");
    assert_eq!(requests.pace().holds(Hold::Again), 3);
}

#[tokio::test(start_paused = true)]
async fn what_no_server_asks_for_is_not_asked_again() {
    for (status, retry_after) in [(500, Some(1)), (503, None), (504, Some(1)), (409, None)] {
        let mut client = client(move |number, _| {
            assert_eq!(number, 1);
            answered(status, retry_after)
        });
        let answer = status_of(&mut client, get("/api/v1/pods")).await;
        assert_eq!(answer, (status, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_gives_in_has_the_last_word() {
    for (seconds, longest) in [(1, 11 * 3 / 2), (10, 60), (600, 60)] {
        let mut client = client(move |_, _| answered(429, Some(seconds)));
        let (status, took) = status_of(&mut client, get("/api/v1/pods")).await;
        assert_eq!(status, 429);
        assert!(took <= Duration::from_secs(longest), "{seconds}: {took:?}");
        assert!(took >= Duration::from_secs(10), "{seconds}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_is_kept_by_all_but_the_lease() {
    let mut client = client(|number, _| match number {
        1 => answered(429, Some(5)),
        _ => answered(200, None),
    });
    let first = client.call(get("/api/v1/pods"));
    let others = ["/api/v1/nodes", "/api/v1/nodes?watch=true"].map(get);
    let mut late = client.clone();
    let rest = async {
        // The first has been turned away by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lease = status_of(&mut late, lease()).await;
        assert_eq!(lease, (200, Duration::ZERO));
        for other in others {
            let mut client = late.clone();
            assert!(client.call(other).now_or_never().is_none());
        }
        status_of(&mut late, get("/api/v1/nodes")).await
    };
    let (first, (status, took)) = tokio::join!(first, rest);
    assert_eq!((first.unwrap().status().as_u16(), status), (200, 200));
    assert!(took >= Duration::from_secs(4), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_a_lease_and_a_watch_when_all_slots_are_taken() {
    let mut client = client(|_, request| match request.uri().path() {
        "/api/v1/slow" => silence(),
        _ => answered(200, None),
    });
    let under_way: Vec<_> = (0..Pace::START)
        .map(|_| client.call(get("/api/v1/slow")))
        .collect();
    let mut under_way = Box::pin(join_all(under_way));
    assert!((&mut under_way).now_or_never().is_none());

    assert_eq!(status_of(&mut client, lease()).await.0, 200);
    let watch = get("/api/v1/pods?watch=true");
    assert_eq!(status_of(&mut client, watch).await.0, 200);
    let start = Instant::now();
    let error = client.call(get("/api/v1/pods")).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), start.elapsed().as_secs()),
        ("the API server was too busy to be asked for 60s", 60)
    );
    drop(under_way);
    let pods = status_of(&mut client, get("/api/v1/pods")).await;
    assert_eq!(pods, (200, Duration::ZERO), "who is gone has no slot");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_copes_with_less_is_asked_for_less() {
    const STRENGTH: usize = 8;
    let under_way = Arc::new(AtomicUsize::new(0));
    let (all, most) = (Arc::clone(&under_way), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let client = client(move |_, _| {
        let (all, peak) = (Arc::clone(&all), Arc::clone(&peak));
        Box::pin(async move {
            let now = all.fetch_add(1, Ordering::Relaxed) + 1;
            peak.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(10)).await;
            all.fetch_sub(1, Ordering::Relaxed);
            match now {
                1..=STRENGTH => answered(200, None).await,
                _ => answered(429, Some(1)).await,
            }
        })
    });
    let mut peaks = Vec::new();
    for _ in 0..6 {
        most.store(0, Ordering::Relaxed);
        let answers = (0..200).map(|_| client.clone().call(get("/api/v1/pods")));
        for answer in join_all(answers).await {
            assert_eq!(answer.unwrap().status(), 200);
        }
        peaks.push(most.load(Ordering::Relaxed));
    }
    assert_eq!(peaks[0], Pace::START);
    assert!(peaks[5] <= 2 * STRENGTH + 2, "{peaks:?}");
}
