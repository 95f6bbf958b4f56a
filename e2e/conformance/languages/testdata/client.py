# The client of Python with its defaults. KUBECONFIG names the server, and NAMESPACE a namespace for the objects.
import json
import os
import unittest

from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

config.load_kube_config()
NAMESPACE = os.environ["NAMESPACE"]
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
apply = {"content_type": "application/apply-patch+yaml", "field_manager": "python"}


def pod(name):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "registry.example/web:1"}]}}


class Client(unittest.TestCase):
    def test_create_read_replace_and_delete(self):
        created = core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "flags"}, "data": {"a": "1"}})
        old = core.read_namespaced_config_map("flags", NAMESPACE)
        self.assertEqual(created.metadata.uid, old.metadata.uid)
        old.data["b"] = "2"
        core.replace_namespaced_config_map("flags", NAMESPACE, old)
        with self.assertRaises(ApiException) as conflict:
            core.replace_namespaced_config_map("flags", NAMESPACE, old)
        self.assertEqual((conflict.exception.status, json.loads(conflict.exception.body)["reason"]), (409, "Conflict"))
        patched = core.patch_namespaced_config_map("flags", NAMESPACE, {"data": {"a": None}})
        self.assertEqual(patched.data, {"b": "2"})
        self.assertEqual(core.delete_namespaced_config_map("flags", NAMESPACE).status, "Success")
        with self.assertRaises(ApiException) as missing:
            core.read_namespaced_config_map("flags", NAMESPACE)
        self.assertEqual(missing.exception.status, 404)

    def test_list_and_watch(self):
        version = core.list_namespaced_pod(NAMESPACE).metadata.resource_version
        core.create_namespaced_pod(NAMESPACE, pod("watched"))
        events = watch.Watch()
        seen = []
        for event in events.stream(core.list_namespaced_pod, NAMESPACE, resource_version=version, timeout_seconds=60):
            seen.append((event["type"], event["object"].spec.restart_policy))
            if len(seen) == 1:
                core.delete_namespaced_pod("watched", NAMESPACE, grace_period_seconds=0)
            elif event["type"] == "DELETED":
                events.stop()
        self.assertEqual((seen[0], seen[-1]), (("ADDED", "Always"), ("DELETED", "Always")))

    def test_server_side_apply(self):
        maps = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"colour": "red"}}
        applied = maps.patch(body=json.dumps(body), name="applied", namespace=NAMESPACE, **apply)
        self.assertEqual(applied.metadata.managedFields[0].operation, "Apply")
        body["data"]["colour"] = "blue"
        with self.assertRaises(dynamic.exceptions.ConflictError) as conflict:
            maps.patch(body=json.dumps(body), name="applied", namespace=NAMESPACE, **{**apply, "field_manager": "other"})
        self.assertIn('conflict with "python"', json.loads(conflict.exception.body)["message"])

    def test_custom_resources(self):
        group = NAMESPACE + ".example.com"
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "maximum": 3}, "colour": {"type": "string", "default": "red"}}}}}
        definitions = client.ApiextensionsV1Api()
        definitions.create_custom_resource_definition({
            "metadata": {"name": "ovens." + group},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "ovens", "kind": "Oven"}, "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}})
        for event in watch.Watch().stream(definitions.list_custom_resource_definition, timeout_seconds=60):
            conditions = event["object"].status.conditions or []
            if event["object"].spec.group == group and any(c.type == "Established" and c.status == "True" for c in conditions):
                break
        oven = {"apiVersion": group + "/v1", "kind": "Oven", "metadata": {"name": "a"}, "spec": {"size": 1}}
        created = custom.create_namespaced_custom_object(group, "v1", NAMESPACE, "ovens", oven)
        self.assertEqual(created["spec"], {"size": 1, "colour": "red"})
        with self.assertRaises(ApiException) as invalid:
            custom.patch_namespaced_custom_object(group, "v1", NAMESPACE, "ovens", "a", {"spec": {"size": 4}})
        self.assertEqual(invalid.exception.status, 422)
        definitions.delete_custom_resource_definition("ovens." + group)


unittest.main()
