// Every scenario of bdd/features. A step without a definition fails the run, and so does one that is pending.
export default {
  paths: ['../features/*.feature'],
  import: ['hooks.js', 'steps/*.js'],
  format: [process.stdout.isTTY ? 'progress-bar' : 'progress', 'message:results.ndjson'],
  strict: true,
  forceExit: false,
};
