// Drives the engine with the official client, unchanged, through every rollout
// verb, endpoints, deployments, events and paging. Run by TestOfficialNpmClient.
import assert from 'node:assert/strict';
import Together from 'together-ai';

const client = new Together();
const { endpoints } = client.beta;
const projectId = process.env.TOGETHER_PROJECT_ID;

/** Collects a paged list, whatever its page size. */
async function all(pages) {
  const out = [];
  for await (const item of pages) out.push(item);
  return out;
}

/** Expects a call to be refused with a class, a status and a message, at once. */
async function refused(call, kind, status, message) {
  const began = Date.now();
  let error;
  try {
    await call();
  } catch (e) {
    error = e;
  }
  assert.ok(error instanceof kind, `wanted ${kind.name}, got ${error}`);
  assert.equal(error.status, status);
  assert.match(error.message, message);
  assert.equal(error.error.error.message, error.error.message, 'both error forms carry the message');
  assert.ok(Date.now() - began < 900, 'a refusal that a repeat cannot mend is not repeated');
}

/** Reads until a condition holds; every wait is bounded. */
async function until(what, read, done) {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const value = await read();
    if (done(value)) return value;
    assert.ok(Date.now() < deadline, `${what} did not come: ${JSON.stringify(value)}`);
    await new Promise((r) => setTimeout(r, 25));
  }
}

const state = (ep, id, ...want) =>
  until(want.join(' or '), () => endpoints.rollouts.retrieve(id, { projectId, endpointId: ep.id }),
    (r) => want.includes(r.state.replace('ROLLOUT_STATE_', '')));

const me = await client.whoami();
assert.equal(me.project_id, projectId);
assert.equal(me.project_slug, 'acme');

// Endpoints and deployments.
const ep = await endpoints.create({ projectId, name: 'chat' });
assert.match(ep.id, /^ep_/);
assert.equal(ep.name, 'acme/chat');
await refused(() => endpoints.create({ projectId, name: 'chat' }), Together.ConflictError, 409, /already exists/);
await refused(() => endpoints.create({ projectId, name: 'no spaces' }), Together.BadRequestError, 400, /not valid/);
await refused(() => endpoints.retrieve('ep_none', { projectId }), Together.NotFoundError, 404, /endpoint ep_none not found/);
await refused(() => new Together({ apiKey: 'wrong' }).whoami(), Together.AuthenticationError, 401, /not valid/);

const deploy = (name, model, config, replicas) =>
  endpoints.deployments.create(ep.id, {
    projectId, name, model, config: `projects/${projectId}/configs/${config}`,
    autoscaling: { minReplicas: replicas, maxReplicas: replicas },
  });
const source = await deploy('stable', 'demo/stable', 'cr_stable', 2);
const target = await deploy('slow', `projects/${projectId}/models/demo/candidate/revisions/rv_7`, 'cr_slow', 0);
assert.equal(target.modelRevisionId, 'rv_7');
assert.equal(target.status.state, 'DEPLOYMENT_STATE_STOPPED');
await refused(() => endpoints.deployments.create(ep.id, { projectId, name: 'x', model: 'demo/unknown', autoscaling: {} }),
  Together.BadRequestError, 400, /no config of the engine serves model/);
await refused(() => endpoints.deployments.create(ep.id, { projectId, name: 'x', model: 'demo/stable', autoscaling: { minReplicas: 0, maxReplicas: 2 } }),
  Together.BadRequestError, 400, /minReplicas 0/);
await until('the source', () => endpoints.deployments.retrieve(source.id, { projectId, endpointId: ep.id }),
  (d) => d.status.state === 'DEPLOYMENT_STATE_READY');
const scaled = await endpoints.deployments.update(source.id, { projectId, endpointId: ep.id, updateMask: 'autoscaling.maxReplicas', autoscaling: { maxReplicas: 3 } });
assert.deepEqual([scaled.autoscaling.minReplicas, scaled.autoscaling.maxReplicas], [2, 3]);
await refused(() => endpoints.deployments.update(source.id, { projectId, endpointId: ep.id, etag: source.etag, autoscaling: { maxReplicas: 2 } }),
  Together.ConflictError, 409, /changed since you read it/);

const split = [{ deploymentId: source.id, weight: 1 }];
const routed = await endpoints.update(ep.id, { projectId, updateMask: 'trafficSplit', trafficSplit: split });
assert.deepEqual(routed.trafficSplit, split);

// Preview and every refusal of a create.
const metrics = [{
  name: 'router_latency', stat: 'METRIC_STAT_TYPE_PERCENTILE', percentile: 95, window: '2s',
  regressionCheck: { direction: 'REGRESSION_DIRECTION_HIGHER_IS_WORSE', maxRegressionPercent: 25 },
}];
const spec = { projectId, sourceDeploymentId: source.id, targetDeploymentId: target.id, canary: { steps: [{ traffic: 40 }, { traffic: 60 }, { traffic: 100 }] }, metrics };
const preview = await endpoints.rollouts.previewDefaults(ep.id, spec);
assert.equal(preview.sourceReplicas, 2);
assert.equal(preview.targetReplicas, 0);
assert.deepEqual(preview.warnings.filter((w) => w.code === 'START_WILL_REJECT'), []);
const plain = await endpoints.rollouts.previewDefaults(ep.id, { ...spec, canary: {}, metrics: [] });
assert.deepEqual(plain.estimatedEffectiveSteps.map((s) => s.traffic), [5, 25, 50, 100]);

const bad = (change, message) => refused(() => endpoints.rollouts.create(ep.id, { ...spec, ...change }), Together.BadRequestError, 400, message);
await bad({ canary: { steps: [{ traffic: 50 }, { traffic: 10 }, { traffic: 100 }] } }, /climbs strictly/);
await bad({ canary: { steps: [{ traffic: 50 }] } }, /ends at 50 %/);
await bad({ canary: undefined, rolling: {} }, /metric gates need the staged steps of a canary/);
await bad({ canary: { stepInterval: '10m' } }, /seconds with an "s"/);
await bad({ metrics: [{ ...metrics[0], name: 'router_latencies' }] }, /unknown metric .* supported: .*did you mean "router_latency"/);
await bad({ metrics: [{ ...metrics[0], stat: 'PERCENTILE' }] }, /METRIC_STAT_TYPE_/);
await bad({ metrics: [{ ...metrics[0], percentile: 'p95' }] }, /percentile/);
await bad({ metrics: [{ ...metrics[0], window: '0.1s' }] }, /below the minimum/);
await bad({ targetDeploymentId: source.id }, /same deployment/);
await bad({ targetDeploymentId: 'dep_none' }, /not one of endpoint/);
await bad({ finalTargetReplicas: 0 }, /cannot serve/);

// Create, the locks, start, pause, resume.
const rollout = await endpoints.rollouts.create(ep.id, spec);
const at = { projectId, endpointId: ep.id };
assert.equal(rollout.state, 'ROLLOUT_STATE_PENDING');
assert.equal(rollout.currentStep, undefined);
assert.equal((await endpoints.retrieve(ep.id, { projectId })).activeRolloutId, rollout.id);
await refused(() => endpoints.rollouts.create(ep.id, spec), Together.ConflictError, 409, new RegExp(`${rollout.id}.*PENDING`));
await refused(() => endpoints.update(ep.id, { projectId, updateMask: 'trafficSplit', trafficSplit: [] }), Together.ConflictError, 409, /cannot update traffic_split while rollout/);
await refused(() => endpoints.deployments.delete(target.id, at), Together.ConflictError, 409, /target of rollout/);
await refused(() => endpoints.deployments.update(source.id, { ...at, autoscaling: { minReplicas: 0, maxReplicas: 0 } }), Together.BadRequestError, 400, /cannot stop/);
await refused(() => endpoints.rollouts.pause(rollout.id, at), Together.BadRequestError, 400, /PENDING/);
await refused(() => endpoints.rollouts.cancel(rollout.id, { ...at, reason: 'x' }), Together.BadRequestError, 400, /PENDING/);
await refused(() => endpoints.rollouts.retrieve('rol_none', at), Together.NotFoundError, 404, /rollout rol_none not found/);

let traffic = true;
let answers = 0;
const load = (async () => {
  for (let n = 0; traffic; n++) {
    const flight = Array.from({ length: 24 }, (_, i) => fetch(`${process.env.GATEWAY}/v1/chat/completions`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ model: 'acme/chat', prompt_cache_key: `${n}-${i}`, messages: [{ role: 'user', content: 'hi' }] }),
    }).then((r) => r.json().then(() => assert.equal(r.status, 200))));
    await Promise.all(flight);
    answers += flight.length;
    await new Promise((r) => setTimeout(r, 20));
  }
})();

const started = await endpoints.rollouts.start(rollout.id, at);
assert.equal(started.state, 'ROLLOUT_STATE_RUNNING');
assert.equal(started.currentStep, 0);
assert.equal((await endpoints.rollouts.start(rollout.id, at)).id, rollout.id, 'a second start is harmless');
const pausing = await endpoints.rollouts.pause(rollout.id, { ...at, reason: 'lunch' });
assert.equal(pausing.state, 'ROLLOUT_STATE_PAUSING');
const paused = await state(ep, rollout.id, 'PAUSED');
assert.equal(paused.pauseInfo.reason, 'lunch');
assert.equal((await all(endpoints.rollouts.list(ep.id, { projectId, filter: 'ROLLOUT_FILTER_ACTIVE' }))).length, 1, 'a paused rollout is active');
await endpoints.rollouts.resume(rollout.id, at);

// It parks on the regression, and is canceled with the split frozen.
const parked = await state(ep, rollout.id, 'SYSTEM_PAUSED');
assert.equal(parked.status.condition.category, 'ROLLOUT_FAILURE_CATEGORY_METRIC_REGRESSION', JSON.stringify(parked.status.condition));
assert.match(parked.pauseInfo.reason, /^metrics-regression: regression check router_latency failed: target=[\d.]+ vs source=[\d.]+, regression=[\d.]+% exceeds max=25\.00% \(direction=REGRESSION_DIRECTION_HIGHER_IS_WORSE\)$/);
assert.equal(parked.status.condition.metrics[0].verdict, 'METRIC_VERDICT_BREACHED');
assert.equal(parked.currentTrafficPercent, 40);
assert.equal(parked.status.steps[0].state, 'ROLLOUT_STEP_STATE_PAUSED');
await refused(() => endpoints.rollouts.cancel(rollout.id, { ...at, reason: '' }), Together.BadRequestError, 400, /needs a reason/);
await refused(() => endpoints.rollouts.cancel(rollout.id, { ...at, reason: 'x', disposition: 'CANCEL_DISPOSITION_REVERT' }), Together.BadRequestError, 400, /always freezes/);
await refused(() => endpoints.rollouts.resume(rollout.id, { ...at, etag: 'stale' }), Together.ConflictError, 409, /changed since you read it/);
await endpoints.rollouts.cancel(rollout.id, { ...at, reason: 'p95 regression', etag: parked.etag });
const canceled = await state(ep, rollout.id, 'CANCELED');
assert.ok(canceled.completedAt);
assert.deepEqual(canceled.status.steps.map((s) => s.state.replace('ROLLOUT_STEP_STATE_', '')), ['CANCELED', 'SKIPPED', 'SKIPPED']);
for (const verb of ['pause', 'resume', 'promote', 'start'])
  await refused(() => endpoints.rollouts[verb](rollout.id, at), Together.BadRequestError, 400, /CANCELED/);

// The way back is an ordinary rollout; promote finishes it.
const back = await endpoints.rollouts.create(ep.id, { projectId, sourceDeploymentId: target.id, targetDeploymentId: source.id, canary: { steps: [{ traffic: 95 }, { traffic: 100 }] } });
await endpoints.rollouts.start(back.id, at);
await endpoints.rollouts.promote(back.id, at);
const done = await state(ep, back.id, 'COMPLETED');
assert.deepEqual(done.status.steps.map((s) => s.state.replace('ROLLOUT_STEP_STATE_', '')), ['SKIPPED', 'PASSED']);
assert.equal(done.currentTrafficPercent, 100);
traffic = false;
await load;
assert.ok(answers > 0);

// Paging, events, analytics, hardware, configs.
assert.deepEqual((await all(endpoints.rollouts.list(ep.id, { projectId, limit: 1 }))).map((r) => r.id), [back.id, rollout.id]);
assert.deepEqual((await all(endpoints.deployments.list(ep.id, { projectId, limit: 1 }))).map((d) => d.id), [target.id, source.id]);
const stable = await all(endpoints.deployments.list(ep.id, { projectId, filter: 'name = "sta*" AND NOT state = "DEPLOYMENT_STATE_STOPPED"' }));
assert.deepEqual(stable.map((d) => d.id), [source.id]);
await refused(async () => all(endpoints.deployments.list(ep.id, { projectId, filter: 'name ~ x' })), Together.BadRequestError, 400, /invalid filter expression/);
const feed = await all(endpoints.listEvents(ep.id, { projectId, subjectId: rollout.id, limit: 2 }));
const types = feed.reverse().map((e) => e.type);
for (const type of ['rollout.created', 'rollout.started', 'rollout.traffic_shifted', 'rollout.system_paused', 'rollout.canceled', 'rollout.canceled_complete'])
  assert.equal(types.filter((t) => t === type).length, 1, `${type} stands once in ${types}`);
const some = await all(endpoints.listEvents(ep.id, { projectId, types: ['rollout.created', 'rollout.completed'] }));
assert.deepEqual(some.map((e) => e.type), ['rollout.completed', 'rollout.created', 'rollout.created']);
const analytics = await endpoints.analytics(ep.id, { projectId });
assert.ok(Number(analytics.metrics.requestMetrics.totalRequests) > 0);
assert.equal((await endpoints.hardware.list()).data[0].id, '1xtest');
assert.equal((await endpoints.hardware.retrieve('1xtest')).priceCentsPerHour, 249);
assert.deepEqual((await all(client.beta.models.configs.list({ projectId, referenceModel: 'demo/candidate' }))).map((c) => c.id), ['cr_slow', 'cr_good']);

// What is left goes in order.
await refused(() => endpoints.delete(ep.id, { projectId }), Together.BadRequestError, 400, /still has 2 deployment/);
await endpoints.rollouts.delete(rollout.id, at);
await endpoints.rollouts.delete(back.id, at);
await endpoints.update(ep.id, { projectId, updateMask: 'trafficSplit', trafficSplit: [] });
for (const d of [source, target]) {
  await endpoints.deployments.update(d.id, { ...at, autoscaling: { minReplicas: 0, maxReplicas: 0 } });
  await until('a stop', () => endpoints.deployments.retrieve(d.id, at), (v) => v.status.state === 'DEPLOYMENT_STATE_STOPPED');
  await endpoints.deployments.delete(d.id, at);
}
await endpoints.delete(ep.id, { projectId });
assert.deepEqual(await all(endpoints.list({ projectId })), []);
console.log(`ok: ${answers} answers, none failed`);
