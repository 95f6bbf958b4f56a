// The client of JavaScript with its defaults. KUBECONFIG names the server, and NAMESPACE a namespace for the objects.
// The tests run one after the other.
import assert from 'node:assert/strict';
import { once, EventEmitter } from 'node:events';
import { test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const namespace = process.env.NAMESPACE;
const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const as = (type) => k8s.setHeaderOptions('Content-Type', type);
const labels = { app: 'web' };
const deployment = {
  metadata: { name: 'web', namespace },
  spec: {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'registry.example/main:1' }] } },
  },
};

// statusOf returns the Status of the error that the promise ends with.
async function statusOf(promise) {
  try {
    await promise;
  } catch (error) {
    return { code: error.code, ...JSON.parse(error.body) };
  }
  throw new Error('no error');
}

test('version and discovery', async () => {
  const version = await config.makeApiClient(k8s.VersionApi).getCode();
  assert.equal(version.major, '1');
  const groups = await config.makeApiClient(k8s.ApisApi).getAPIVersions();
  assert.ok(groups.groups.some((group) => group.name === 'apps'));
  const resources = await apps.getAPIResources();
  assert.ok(resources.resources.some((resource) => resource.name === 'deployments/scale'));
});

test('create, read, list, replace and delete', async () => {
  const created = await core.createNamespacedConfigMap({
    namespace, body: { metadata: { name: 'flags', labels: { colour: 'red' } }, data: { a: '1' } },
  });
  assert.ok(created.metadata.creationTimestamp instanceof Date);
  const read = await core.readNamespacedConfigMap({ namespace, name: 'flags' });
  assert.deepEqual(read.data, { a: '1' });
  const list = await core.listNamespacedConfigMap({ namespace, labelSelector: 'colour=red' });
  assert.deepEqual(list.items.map((item) => item.metadata.name), ['flags']);
  read.data.b = '2';
  const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'flags', body: read });
  assert.notEqual(replaced.metadata.resourceVersion, read.metadata.resourceVersion);
  const conflict = await statusOf(core.replaceNamespacedConfigMap({ namespace, name: 'flags', body: read }));
  assert.equal(conflict.code, 409);
  assert.equal(conflict.reason, 'Conflict');
  const deleted = await core.deleteNamespacedConfigMap({ namespace, name: 'flags' });
  assert.equal(deleted.status, 'Success');
  const missing = await statusOf(core.readNamespacedConfigMap({ namespace, name: 'flags' }));
  assert.deepEqual([missing.code, missing.message], [404, 'configmaps "flags" not found']);
});

test('every kind of patch', async () => {
  await apps.createNamespacedDeployment({ namespace, body: deployment });
  const patch = (body, type, options = {}) =>
    apps.patchNamespacedDeployment({ name: 'web', namespace, body, ...options }, as(type));
  const json = await patch([{ op: 'add', path: '/metadata/labels', value: { a: '1' } }], k8s.PatchStrategy.JsonPatch);
  assert.deepEqual(json.metadata.labels, { a: '1' });
  const merged = await patch({ spec: { replicas: 2 } }, k8s.PatchStrategy.MergePatch);
  assert.equal(merged.spec.replicas, 2);
  const container = { name: 'side', image: 'registry.example/side:1' };
  const strategic = await patch(
    { spec: { template: { spec: { containers: [container] } } } }, k8s.PatchStrategy.StrategicMergePatch);
  assert.deepEqual(strategic.spec.template.spec.containers.map((c) => c.name).sort(), ['main', 'side']);
  const applied = await patch(
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', labels: { b: '2' } } },
    k8s.PatchStrategy.ServerSideApply, { fieldManager: 'node' });
  assert.deepEqual(applied.metadata.labels, { a: '1', b: '2' });
  const invalid = await statusOf(patch({ spec: { replicas: -1 } }, k8s.PatchStrategy.MergePatch));
  assert.equal(invalid.code, 422);
  assert.equal(invalid.details.causes[0].field, 'spec.replicas');
});

test('defaults and subresources', async () => {
  const read = await apps.readNamespacedDeployment({ name: 'web', namespace });
  assert.equal(read.spec.strategy.type, 'RollingUpdate');
  assert.equal(read.spec.template.spec.restartPolicy, 'Always');
  const scale = await apps.readNamespacedDeploymentScale({ name: 'web', namespace });
  scale.spec.replicas = 4;
  await apps.replaceNamespacedDeploymentScale({ name: 'web', namespace, body: scale });
  const status = await apps.patchNamespacedDeploymentStatus(
    { name: 'web', namespace, body: { status: { replicas: 4, observedGeneration: 3 } } }, as(k8s.PatchStrategy.MergePatch));
  assert.equal(status.spec.replicas, 4);
  assert.equal(status.status.replicas, 4);
});

test('untyped objects and definitions', async () => {
  const client = k8s.KubernetesObjectApi.makeApiClient(config);
  await client.create({
    apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'mills.node.leat.example' },
    spec: {
      group: 'node.leat.example', scope: 'Namespaced', names: { plural: 'mills', singular: 'mill', kind: 'Mill' },
      versions: [{
        name: 'v1', served: true, storage: true,
        schema: { openAPIV3Schema: {
          type: 'object', properties: { spec: { type: 'object', properties: { arms: { type: 'integer', _default: 4 } } } } } },
      }],
    },
  });
  const custom = config.makeApiClient(k8s.CustomObjectsApi);
  const mills = { group: 'node.leat.example', version: 'v1', namespace, plural: 'mills' };
  const body = { apiVersion: 'node.leat.example/v1', kind: 'Mill', metadata: { name: 'm' }, spec: {} };
  let created;
  for (let i = 0; !created; i++) { // a real server serves a new definition a little later
    try {
      created = await custom.createNamespacedCustomObject({ ...mills, body });
    } catch (error) {
      if (error.code !== 404 || i === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  assert.equal(created.spec.arms, 4);
  const read = await client.read({ apiVersion: 'node.leat.example/v1', kind: 'Mill', metadata: { name: 'm', namespace } });
  assert.equal(read.metadata.uid, created.metadata.uid);
  const list = await custom.listNamespacedCustomObject(mills);
  assert.equal(list.items.length, 1);
});

test('watch', async () => {
  const list = await core.listNamespacedSecret({ namespace });
  const events = new EventEmitter();
  const request = await new k8s.Watch(config).watch(
    `/api/v1/namespaces/${namespace}/secrets`, { resourceVersion: list.metadata.resourceVersion },
    (type, object) => events.emit('event', type, object.metadata.name), () => events.emit('end'));
  const expect = async (type, send) => {
    const event = once(events, 'event');
    await send();
    assert.deepEqual(await event, [type, 's']);
  };
  await expect('ADDED', () => core.createNamespacedSecret({ namespace, body: { metadata: { name: 's' } } }));
  await expect('MODIFIED', () => core.patchNamespacedSecret(
    { name: 's', namespace, body: { stringData: { a: 'b' } } }, as(k8s.PatchStrategy.MergePatch)));
  await expect('DELETED', () => core.deleteNamespacedSecret({ name: 's', namespace }));
  const end = once(events, 'end');
  request.abort();
  await end;
});

test('informer', async () => {
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'main', image: 'registry.example/main:1' }] } };
  const informer = k8s.makeInformer(
    config, `/api/v1/namespaces/${namespace}/pods`, () => core.listNamespacedPod({ namespace }));
  const next = (event) => new Promise((resolve) => informer.on(event, (object) => object.metadata.name === 'p' && resolve(object)));
  const [added, updated, deleted] = [next('add'), next('update'), next('delete')];
  await informer.start();
  await core.createNamespacedPod({ namespace, body: pod });
  assert.equal((await added).spec.dnsPolicy, 'ClusterFirst');
  await core.patchNamespacedPod(
    { name: 'p', namespace, body: { metadata: { labels: { a: 'b' } } } }, as(k8s.PatchStrategy.MergePatch));
  assert.deepEqual((await updated).metadata.labels, { a: 'b' });
  assert.equal(informer.get('p', namespace).metadata.name, 'p');
  await core.deleteNamespacedPod({ name: 'p', namespace, gracePeriodSeconds: 0 });
  await deleted;
  await informer.stop();
});
