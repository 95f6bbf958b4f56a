package manager

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/controller"
)

// settings are the effective options of a manager, including defaults.
type settings struct {
	Election          bool
	ElectionTolerance metav1.Duration
	GracePeriod       metav1.Duration
	SyncTimeout       metav1.Duration
	ShowReasons       bool
	Admin             string // the address of the admin server; empty if it is off
}

func (o Options) settings() settings {
	s := settings{
		Election:          o.Elector != nil,
		ElectionTolerance: metav1.Duration{Duration: o.ElectionTolerance},
		GracePeriod:       metav1.Duration{Duration: o.GracePeriod},
		SyncTimeout:       metav1.Duration{Duration: o.SyncTimeout},
		ShowReasons:       o.ShowReasons,
	}
	switch {
	case o.Admin.off():
	case o.Admin.Listener != nil:
		s.Admin = o.Admin.Listener.Addr().String()
	default:
		s.Admin = o.Admin.Address
	}
	return s
}

// serveSettings serves the effective options of the manager and its controllers.
func (m *Manager) serveSettings(w http.ResponseWriter, _ *http.Request) {
	answer := struct {
		Manager     settings
		Controllers []controller.Settings
	}{m.o.settings(), []controller.Settings{}}
	for _, d := range m.debuggable() {
		if s, ok := d.(SettingsReporter); ok {
			answer.Controllers = append(answer.Controllers, s.Settings())
		}
	}
	writeJSON(w, answer)
}
