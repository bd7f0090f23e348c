// Every scenario of bdd/features. A step without a definition fails the run, and so does one that is pending.
export default {
  paths: [`../features/${process.env.IGGY_BDD_FEATURE || '*'}.feature`],
  import: ['hooks.js', 'steps/*.js'],
  format: [process.stdout.isTTY ? 'progress-bar' : 'progress'],
  // What waits for the clock of the node.
  tags: process.env.IGGY_BDD_SLOW ? '' : 'not @slow',
  strict: true,
  forceExit: false,
};
