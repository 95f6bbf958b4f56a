package kubeconfig

// Until waits for a load until a context ends.
var Until = until
