//! Passwords and personal access tokens: slow hashes off the shard threads, fast digests on them.
//!
//! Argon2id costs tens of milliseconds and 19 MiB each, so hashing runs on threads of its own, one per processor, and at
//! most [`WAITING_MAX`] more wait for their turn. A flood of logins is thus refused as retryable and neither takes the
//! memory nor stalls a shard. The threads are always the same ones: an allocator keeps what each thread that ever hashed
//! has freed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Hash jobs that may wait for a thread.
pub const WAITING_MAX: usize = 256;
/// How long one job may wait for a thread.
pub const WAIT_DEADLINE: Duration = Duration::from_secs(10);

const TOKEN_BYTES: usize = 48;

type Job = Box<dyn FnOnce() + Send>;

/// Why a password was not hashed or verified.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PasswordError {
    /// Too many jobs wait already, or this one waited too long. Retryable.
    #[error("{WAITING_MAX} password checks wait already, or this one waited {WAIT_DEADLINE:?}; try again")]
    Busy,
    /// A stored hash is not a PHC string of a known algorithm.
    #[error("the stored password hash cannot be read: {0}")]
    StoredHash(String),
    /// Hashing itself failed.
    #[error("the password could not be hashed: {0}")]
    Hashing(String),
}

/// Hashes and verifies passwords with Argon2id. Clones share the same bounds, so that all shards together keep them.
#[derive(Clone)]
pub struct Passwords {
    jobs: mpsc::Sender<Job>,
    permits: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    decoy: Arc<OnceLock<String>>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Passwords {
    /// At most `threads` jobs at once.
    ///
    /// # Panics
    /// When the system gives no thread, which a server cannot start without.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        for index in 0..threads {
            let queue = Arc::clone(&queue);
            thread::Builder::new()
                .name(format!("password-{index}"))
                .spawn(move || work(&queue))
                .expect("the system has a thread for passwords");
        }
        Self {
            jobs,
            permits: Arc::new(Semaphore::new(threads)),
            waiting: Arc::default(),
            decoy: Arc::default(),
        }
    }

    /// The PHC string of `password` with a new salt.
    ///
    /// # Errors
    /// [`PasswordError::Busy`], or a failure of the system's random source.
    ///
    /// # Cancel safety
    /// A dropped call changes nothing; a job that already runs finishes unseen and keeps its thread until then.
    pub async fn hash(&self, password: Vec<u8>) -> Result<String, PasswordError> {
        self.run(move || hash_now(&password)).await?
    }

    /// Whether `password` is the one that `stored` was made of.
    ///
    /// # Errors
    /// [`PasswordError::Busy`], or a stored hash that cannot be read.
    ///
    /// # Cancel safety
    /// As [`Self::hash`].
    pub async fn verify(&self, password: Vec<u8>, stored: String) -> Result<bool, PasswordError> {
        self.run(move || verify_now(&password, &stored)).await?
    }

    /// Takes as long as [`Self::verify`] and is always false: what a login with an unknown name runs, so that its
    /// duration does not tell which names exist.
    ///
    /// # Errors
    /// As [`Self::verify`].
    ///
    /// # Cancel safety
    /// As [`Self::hash`].
    pub async fn verify_unknown(&self, password: Vec<u8>) -> Result<bool, PasswordError> {
        let decoy = self.decoy.clone();
        self.run(move || {
            let stored = if let Some(stored) = decoy.get() {
                stored
            } else {
                let made = hash_now(new_token()?.as_bytes())?;
                decoy.get_or_init(|| made)
            };
            verify_now(&password, stored).map(|_| false)
        })
        .await?
    }

    async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, PasswordError> {
        let waiting = Waiting::enter(&self.waiting)?;
        let permit = timeout(WAIT_DEADLINE, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| PasswordError::Busy)?
            .map_err(|_| PasswordError::Busy)?;
        drop(waiting);
        let ended = || PasswordError::Hashing("the thread that hashes has ended".to_owned());
        let (answer, outcome) = oneshot::channel();
        let job = move || {
            // A caller that is gone wants nothing hashed.
            if !answer.is_closed() {
                let _ = answer.send(job());
            }
            drop(permit);
        };
        self.jobs.send(Box::new(job)).map_err(|_| ended())?;
        outcome.await.map_err(|_| ended())
    }
}

/// Runs jobs until the last sender of them is gone.
fn work(queue: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // A job that fails costs its own answer, never the thread.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

/// One place in the queue, given back on drop so that a cancelled call frees it.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn enter(count: &Arc<AtomicUsize>) -> Result<Self, PasswordError> {
        let place = Self(count.clone());
        if count.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(PasswordError::Busy);
        }
        Ok(place)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn hash_now(password: &[u8]) -> Result<String, PasswordError> {
    let hashed: PasswordHash = Argon2::default()
        .hash_password(password)
        .map_err(|error| PasswordError::Hashing(error.to_string()))?;
    Ok(hashed.to_string())
}

fn verify_now(password: &[u8], stored: &str) -> Result<bool, PasswordError> {
    let stored = PasswordHash::new(stored).map_err(|error| PasswordError::StoredHash(error.to_string()))?;
    match Argon2::default().verify_password(password, &stored) {
        Ok(()) => Ok(true),
        Err(argon2::password_hash::Error::PasswordInvalid) => Ok(false),
        Err(error) => Err(PasswordError::StoredHash(error.to_string())),
    }
}

/// A new personal access token: 64 characters that stand for 48 random bytes, in the URL-safe alphabet of base64, so
/// that it fits a connection string, a shell and a header as it is. It never begins with a dash, which command lines
/// would take for an option.
///
/// # Errors
/// The system's random source failed.
pub fn new_token() -> Result<String, PasswordError> {
    loop {
        let mut bytes = [0; TOKEN_BYTES];
        OsRng
            .try_fill_bytes(&mut bytes)
            .map_err(|error| PasswordError::Hashing(error.to_string()))?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        if !token.starts_with('-') {
            return Ok(token);
        }
    }
}

/// What is stored and looked up in place of a token: its SHA-256. A token is random over 384 bits, so a fast digest
/// without salt is enough.
pub fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[tokio::test]
    async fn given_a_hash_should_verify_only_its_password() {
        let passwords = Passwords::new(1);
        let stored = passwords.hash(b"secret".to_vec()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$"), "{stored}");
        assert_eq!(passwords.verify(b"secret".to_vec(), stored.clone()).await, Ok(true));
        assert_eq!(passwords.verify(b"Secret".to_vec(), stored.clone()).await, Ok(false));
        assert_ne!(
            passwords.hash(b"secret".to_vec()).await.unwrap(),
            stored,
            "each hash has its own salt"
        );
    }

    #[tokio::test]
    async fn given_an_unknown_user_should_never_verify() {
        let passwords = Passwords::new(1);
        assert_eq!(passwords.verify_unknown(b"secret".to_vec()).await, Ok(false));
        assert_eq!(passwords.verify_unknown(b"secret".to_vec()).await, Ok(false));
    }

    #[tokio::test]
    async fn given_a_damaged_stored_hash_should_say_so() {
        let refused = Passwords::new(1)
            .verify(b"secret".to_vec(), "$argon2id$garbage".to_owned())
            .await;
        assert!(matches!(refused, Err(PasswordError::StoredHash(_))), "{refused:?}");
    }

    #[tokio::test]
    async fn given_a_full_queue_should_refuse_and_admit_again_after_a_cancel() {
        let passwords = Passwords::new(1);
        let _thread = passwords.permits.clone().acquire_owned().await.unwrap();
        let mut queued: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(passwords.run(|| ()))).collect();
        for job in &mut queued {
            assert!(futures::poll!(job).is_pending());
        }
        assert_eq!(passwords.run(|| ()).await, Err(PasswordError::Busy));
        queued.pop();
        assert!(futures::poll!(Box::pin(passwords.run(|| ()))).is_pending());
    }

    #[tokio::test]
    async fn given_many_jobs_when_run_should_use_the_same_few_threads() {
        let passwords = Passwords::new(2);
        let jobs = (0..200).map(|_| passwords.run(|| thread::current().id()));
        let threads: HashSet<_> = futures::future::join_all(jobs)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert!(threads.len() <= 2, "{} threads hashed", threads.len());
    }

    #[tokio::test]
    async fn given_a_job_that_fails_should_run_the_next() {
        let passwords = Passwords::new(1);
        let failed = passwords.run(|| panic!("a test's own panic")).await;
        assert!(matches!(failed, Err(PasswordError::Hashing(_))), "{failed:?}");
        assert_eq!(passwords.run(|| 7).await, Ok(7));
    }

    #[test]
    fn given_tokens_should_differ_and_fit_a_connection_string() {
        let (first, second) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.len(), 64);
        assert!(
            first
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
            "{first}"
        );
    }

    #[test]
    fn given_many_tokens_should_never_begin_with_a_dash() {
        assert!((0..2_000).all(|_| !new_token().unwrap().starts_with('-')));
    }

    #[test]
    fn given_a_token_should_digest_as_sha_256_does() {
        assert_eq!(token_hash("abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
