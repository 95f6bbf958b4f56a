# curl. SERVER is the address of the server, NAMESPACE a namespace for the objects, and CURL_HOME has the credentials.
maps=$SERVER/api/v1/namespaces/$NAMESPACE/configmaps
json='Content-Type: application/json'

# same fails unless both texts are equal.
same() {
	[ "$1" = "$2" ] || { echo "got '$1', expected '$2'" >&2; exit 1; }
}

# code prints the status of the answer, whatever it is.
code() { curl -s -o answer -w '%{http_code}' "$@"; }

same "$(curl -fsS "$SERVER/readyz")" ok
same "$(code -H "$json" -d '{"metadata": {"name": "flags"}, "data": {"a": "1"}}' "$maps")" 201
same "$(code -H "$json" -d '{"metadata": {"name": "flags"}}' "$maps")" 409
grep -q '"reason": "AlreadyExists"' answer
same "$(code -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{"data": {"b": "2"}}' "$maps/flags")" 200
grep -q '"b": "2"' answer
same "$(code -X PATCH -H 'Content-Type: application/json-patch+json' -d '[{"op": "remove", "path": "/data/a"}]' "$maps/flags")" 200
if grep -q '"a": "1"' answer; then exit 1; fi
same "$(code -X PATCH -H 'Content-Type: application/apply-patch+yaml' -d '{"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "3"}}' "$maps/flags?fieldManager=other")" 409
grep -q 'conflict with' answer
same "$(code -H "$json" -d '{"metadata": {"name": "Flags"}}' "$maps")" 422
same "$(code -X DELETE "$maps/flags")" 200
same "$(code "$maps/flags")" 404
same "$(curl -q -s --cacert ca.crt -o answer -w '%{http_code}' -H 'Authorization: Bearer wrong' "$maps")" 401
same "$(curl -fsS -H 'Accept: application/json;as=Table;g=meta.k8s.io;v=v1' "$maps" | grep -c '"kind": *"Table"')" 1
