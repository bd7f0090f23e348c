//! Sending in the background: bounded queues, workers that gather sends into batches, three ways to push back.
//!
//! Dropping the producer closes the queues; the workers send what is buffered and end.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use iggy_protocol::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use crate::error::IggyError;
use crate::producer::{BackgroundConfig, BackpressureMode, Job, Plan, Sharding};

/// Sends a worker's queue holds.
const QUEUE: usize = 256;

struct Queued {
    job: Job,
    size: usize,
    _room: Option<OwnedSemaphorePermit>,
}

/// The workers of a background producer.
#[derive(Debug)]
pub struct Workers {
    queues: Mutex<Vec<mpsc::Sender<Queued>>>,
    tasks: tokio::sync::Mutex<JoinSet<()>>,
    room: Option<Arc<Semaphore>>,
    config: BackgroundConfig,
    turn: AtomicUsize,
}

impl Workers {
    /// Starts the workers.
    pub fn start(plan: &Arc<Plan>, config: BackgroundConfig) -> Self {
        let mut tasks = JoinSet::new();
        let queues = (0..config.num_shards.max(1)).map(|_| {
            let (queue, jobs) = mpsc::channel(QUEUE);
            tasks.spawn(work(plan.clone(), jobs, config.clone()));
            queue
        });
        let queues = Mutex::new(queues.collect());
        let permits = config.max_buffer_size.min(Semaphore::MAX_PERMITS);
        let room = (permits > 0).then(|| Arc::new(Semaphore::new(permits)));
        Self {
            queues,
            tasks: tokio::sync::Mutex::new(tasks),
            room,
            config,
            turn: AtomicUsize::new(0),
        }
    }

    /// Takes a job into the buffer, or pushes back.
    pub async fn submit(&self, job: Job) -> Result<(), IggyError> {
        let size = job.size();
        if self.room.is_some() && size > self.config.max_buffer_size {
            let message = format!(
                "a send of {size} bytes is above the buffer of {} bytes",
                self.config.max_buffer_size
            );
            return Err(IggyError::new(ErrorCode::BackgroundSendBufferOverflow, message));
        }
        let queue = self.queue(&job)?;
        match self.config.failure_mode {
            BackpressureMode::Block => self.enqueue(queue, job, size).await,
            BackpressureMode::BlockWithTimeout(limit) => {
                let waited = tokio::time::timeout(limit.into(), self.enqueue(queue, job, size)).await;
                waited.unwrap_or_else(|_| {
                    let message = format!("the send buffer had no room within {limit}");
                    Err(IggyError::new(ErrorCode::BackgroundSendTimeout, message))
                })
            }
            BackpressureMode::FailImmediately => self.try_enqueue(&queue, job, size),
        }
    }

    fn queue(&self, job: &Job) -> Result<mpsc::Sender<Queued>, IggyError> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.is_empty() {
            return Err(IggyError::new(ErrorCode::ProducerClosed, "the producer was shut down"));
        }
        let index = match self.config.sharding {
            Sharding::Balanced => self.turn.fetch_add(1, Ordering::Relaxed),
            Sharding::Ordered => {
                let mut hasher = DefaultHasher::new();
                job.place.hash(&mut hasher);
                hasher.finish() as usize
            }
        };
        Ok(queues[index % queues.len()].clone())
    }

    async fn enqueue(&self, queue: mpsc::Sender<Queued>, job: Job, size: usize) -> Result<(), IggyError> {
        let room = match &self.room {
            Some(room) => room.clone().acquire_many_owned(permits(size)).await.ok(),
            None => None,
        };
        queue
            .send(Queued { job, size, _room: room })
            .await
            .map_err(|_| disconnected())
    }

    fn try_enqueue(&self, queue: &mpsc::Sender<Queued>, job: Job, size: usize) -> Result<(), IggyError> {
        let full = || {
            let message = format!(
                "no room for {size} bytes in the buffer of {} bytes",
                self.config.max_buffer_size
            );
            IggyError::new(ErrorCode::BackgroundSendBufferOverflow, message)
        };
        let room = match &self.room {
            Some(room) => Some(room.clone().try_acquire_many_owned(permits(size)).map_err(|_| full())?),
            None => None,
        };
        queue
            .try_send(Queued { job, size, _room: room })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => full(),
                mpsc::error::TrySendError::Closed(_) => disconnected(),
            })
    }

    /// Closes the queues and waits until the workers have sent everything.
    pub async fn drain(&self, limit: Duration) -> Result<(), IggyError> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let finished = async {
            let mut tasks = self.tasks.lock().await;
            while tasks.join_next().await.is_some() {}
        };
        tokio::time::timeout(limit, finished).await.map_err(|_| {
            IggyError::new(
                ErrorCode::TaskTimeout,
                format!("the background did not drain within {limit:?}"),
            )
        })
    }
}

impl Drop for Workers {
    /// The workers see their queues closed and end by themselves once everything is sent.
    fn drop(&mut self) {
        self.tasks.get_mut().detach_all();
    }
}

fn permits(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn disconnected() -> IggyError {
    IggyError::new(
        ErrorCode::BackgroundWorkerDisconnected,
        "the background worker has ended",
    )
}

async fn work(plan: Arc<Plan>, mut jobs: mpsc::Receiver<Queued>, config: BackgroundConfig) {
    let in_flight = Arc::new(Semaphore::new(config.max_in_flight.max(1)));
    let mut requests = JoinSet::new();
    while let Some(first) = jobs.recv().await {
        let gathered = gather(first, &mut jobs, &config).await;
        let Ok(slot) = in_flight.clone().acquire_owned().await else {
            return;
        };
        let (plan, report) = (plan.clone(), config.error_callback.clone());
        let request = async move {
            let _slot = slot;
            for job in merge(gathered) {
                let (job, _room) = job;
                if let Err(error) = plan.send_job(job).await {
                    report(error);
                }
            }
        };
        if config.max_in_flight <= 1 {
            request.await;
        } else {
            requests.spawn(request);
            while requests.try_join_next().is_some() {}
        }
    }
    while requests.join_next().await.is_some() {}
}

/// Waits for more sends until one of the thresholds is reached.
async fn gather(first: Queued, jobs: &mut mpsc::Receiver<Queued>, config: &BackgroundConfig) -> Vec<Queued> {
    let until = Instant::now() + Duration::from(config.linger_time);
    let mut bytes = first.size;
    let mut gathered = vec![first];
    loop {
        let full = (config.batch_size > 0 && bytes >= config.batch_size)
            || (config.batch_length > 0 && gathered.len() >= config.batch_length);
        if full {
            return gathered;
        }
        // What is queued already comes along even when there is no time left to wait.
        let next = match jobs.try_recv() {
            Ok(next) => Some(next),
            Err(_) => tokio::time::timeout_at(until, jobs.recv()).await.ok().flatten(),
        };
        let Some(next) = next else { return gathered };
        bytes += next.size;
        gathered.push(next);
    }
}

/// Joins neighbouring sends of the same place and partitioning; each keeps its room in the buffer until it is sent.
fn merge(gathered: Vec<Queued>) -> Vec<(Job, Vec<Option<OwnedSemaphorePermit>>)> {
    let mut merged: Vec<(Job, Vec<Option<OwnedSemaphorePermit>>)> = Vec::new();
    for Queued { job, _room: room, .. } in gathered {
        match merged.last_mut() {
            Some((last, rooms)) if last.place == job.place && last.partitioning == job.partitioning => {
                last.messages.extend(job.messages);
                rooms.push(room);
            }
            _ => merged.push((job, vec![room])),
        }
    }
    merged
}
