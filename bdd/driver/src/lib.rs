//! Runs the scenarios of `bdd/features` for languages that have no runner of their own: one parser, one table of steps
//! and one way of judging, while the language brings a small program, its agent.
//!
//! Faults tolerated: an agent that answers nonsense, too late or not at all, or ends, fails the scenario and is started
//! again for the next one. A node that a failed scenario left stopped is started again.
//!
//! # The line protocol
//!
//! The agent reads one JSON object per line from its input and answers each with one line on its output, which it
//! flushes. What else it has to say goes to its standard error. When its input ends it must exit with status 0 by
//! itself, within [`agent::EXIT_DEADLINE`].
//!
//! | The driver says | When |
//! |---|---|
//! | `{"op":"begin","feature":F,"scenario":S,"tags":[..],"address":"127.0.0.1:PORT","data_directory":DIR}` | A scenario begins. The agent forgets the one before and removes what it left at the node: every stream, every user but `iggy`, and the tokens of `iggy`. The address stays the same through all scenarios and restarts |
//! | `{"op":"step","keyword":K,"name":N,"arguments":{..},"table":T,"doc":D,"text":TEXT}` | The next step. The keyword is `given`, `when` or `then`; name and arguments are as in [`steps::STEPS`] (`iggy-bdd-driver --steps` prints them); the table is rows of cells, table and doc are null where there are none; the text is for messages only |
//! | `{"op":"end"}` | After the last step, or after one that failed. The agent closes all it opened |
//!
//! The agent answers `{"status":"passed"}`, `{"status":"failed","message":WHY}`, or `{"status":"undefined"}` for a name it
//! does not know. Everything but `passed` fails the scenario.
//!
//! Requests may fail on purpose: an error of the client in a `given` or `when` step is kept by the agent, which answers
//! `passed`. The step `request_fails` takes it and compares its name. Any other step that looks at a result, the next
//! request and `end` fail while an error is kept.
//!
//! Steps that stop, kill and start the node never reach the agent; the driver does what they say.

pub mod agent;
pub mod features;
pub mod node;
pub mod patterns;
pub mod run;
pub mod steps;
pub mod values;
