package leatcache_test

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/scale/packed"
)

func Example() {
	config := &rest.Config{Host: "https://10.0.0.1:6443"} // usually from ctrl.GetConfig
	m, err := manager.New(config, manager.Options{NewCache: leatcache.New})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%T\n", m.GetCache())
	// Output: *leatcache.Cache
}

func Example_packed() {
	options := leatcache.Options{Hold: packed.Bytes[client.Object](), DropManagedFields: true}
	m, err := manager.New(&rest.Config{Host: "https://10.0.0.1:6443"}, manager.Options{NewCache: options.New})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%T\n", m.GetCache())
	// Output: *leatcache.Cache
}
