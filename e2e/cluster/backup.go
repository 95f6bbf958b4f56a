package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// BackUpEtcd keeps a copy of etcd's data for RestoreEtcd, instead of an earlier one. It kills etcd for that, so that the
// copy is of one moment, and starts it again. The API server stays.
func (c *Cluster) BackUpEtcd(ctx context.Context) error {
	if err := c.KillEtcd(); err != nil {
		return err
	}
	if err := c.copyData(etcdBackup, etcdData); err != nil {
		return fmt.Errorf("cluster: back up etcd: %w", err)
	}
	return c.StartEtcd(ctx)
}

// RestoreEtcd kills both servers, puts the copy of etcd's data back, and starts both again, the API server with flags as
// StartAPIServer has them. Revisions go back too, as after etcdutl snapshot restore without --bump-revision.
func (c *Cluster) RestoreEtcd(ctx context.Context, flags ...string) error {
	for _, kill := range []func() error{c.KillAPIServer, c.KillEtcd} { // an API server must not write to what comes back
		if err := kill(); err != nil {
			return err
		}
	}
	if err := c.copyData(etcdData, etcdBackup); err != nil {
		return fmt.Errorf("cluster: restore etcd: %w", err)
	}
	if err := c.StartEtcd(ctx); err != nil {
		return err
	}
	return c.StartAPIServer(ctx, flags...)
}

// copyData replaces one folder of the working folder by a copy of another.
func (c *Cluster) copyData(to, from string) error {
	to, from = filepath.Join(c.dir, to), filepath.Join(c.dir, from)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
