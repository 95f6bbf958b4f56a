# The client of Ruby with its defaults. KUBECONFIG names the server, and NAMESPACE a namespace for the objects.
require 'kubeclient'
require 'minitest/autorun'

NAMESPACE = ENV.fetch('NAMESPACE')
CONTEXT = Kubeclient::Config.read(ENV.fetch('KUBECONFIG')).context

def client(group, version)
  Kubeclient::Client.new(CONTEXT.api_endpoint + group, version, ssl_options: CONTEXT.ssl_options, auth_options: CONTEXT.auth_options)
end

CORE = client('/api', 'v1')

class TestClient < Minitest::Test
  def resource(name, fields)
    Kubeclient::Resource.new({ metadata: { name: name, namespace: NAMESPACE } }.merge(fields))
  end

  def pod(name)
    resource(name, spec: { containers: [{ name: 'main', image: 'registry.example/web:1' }] })
  end

  def test_create_read_update_and_delete
    CORE.create_config_map(resource('flags', data: { a: '1' }))
    read = CORE.get_config_map('flags', NAMESPACE)
    read.data.b = '2'
    CORE.update_config_map(read)
    conflict = assert_raises(Kubeclient::HttpError) { CORE.update_config_map(read) }
    assert_equal 409, conflict.error_code
    assert_equal({ b: '2' }, CORE.patch_config_map('flags', { data: { a: nil } }, NAMESPACE).data.to_h)
    CORE.delete_config_map('flags', NAMESPACE)
    assert_raises(Kubeclient::ResourceNotFoundError) { CORE.get_config_map('flags', NAMESPACE) }
  end

  def test_list_and_watch
    version = CORE.get_pods(namespace: NAMESPACE).resourceVersion
    CORE.create_pod(pod('watched'))
    seen = []
    CORE.watch_pods(namespace: NAMESPACE, resource_version: version) do |event|
      seen << [event.type, event.object.spec.restartPolicy]
      break if event.type == 'DELETED'

      CORE.delete_pod('watched', NAMESPACE) if seen.length == 1
    end
    assert_equal [%w[ADDED Always], %w[DELETED Always]], seen.values_at(0, -1)
  end

  def test_server_side_apply
    body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied', namespace: NAMESPACE }, data: { colour: 'red' } }
    applied = CORE.apply_config_map(body, field_manager: 'ruby')
    assert_equal 'Apply', applied.metadata.managedFields[0].operation
    conflict = assert_raises(Kubeclient::HttpError) do
      CORE.apply_config_map(body.merge(data: { colour: 'blue' }), field_manager: 'other', force: false)
    end
    assert_includes conflict.message, 'conflict with "ruby"'
  end

  def test_custom_resources
    group = "#{NAMESPACE}.example.org"
    definitions = client('/apis/apiextensions.k8s.io', 'v1')
    definitions.create_custom_resource_definition(
      Kubeclient::Resource.new(metadata: { name: "ovens.#{group}" }, spec: {
        group: group, scope: 'Namespaced', names: { plural: 'ovens', kind: 'Oven' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: {
          type: 'object', properties: { spec: { type: 'object', properties: { size: { type: 'integer', maximum: 3 } } } }
        } } }]
      })
    )
    definitions.watch_custom_resource_definitions(name: "ovens.#{group}") do |event|
      break if (event.object.status.conditions || []).any? { |c| c.type == 'Established' && c.status == 'True' }
    end
    ovens = client("/apis/#{group}", 'v1')
    assert_equal 1, ovens.create_oven(resource('a', spec: { size: 1 })).spec['size']
    invalid = assert_raises(Kubeclient::HttpError) { ovens.create_oven(resource('b', spec: { size: 4 })) }
    assert_equal 422, invalid.error_code
    definitions.delete_custom_resource_definition("ovens.#{group}")
  end
end
