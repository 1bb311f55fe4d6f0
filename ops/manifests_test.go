package ops

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const overlay = "../deploy/kubernetes/overlays/example"

// manifests is what an overlay renders to, each object by its kind and name. Decoding is strict: a field that the
// Kubernetes API does not have is an error.
func manifests(t *testing.T) map[string]runtime.Object {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	found := map[string]runtime.Object{}
	for _, r := range rendered.Resources() {
		raw, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, kind, err := decoder.Decode(raw, nil, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", r.GetKind(), r.GetName(), err)
		}
		found[kind.Kind+"/"+r.GetName()] = object
	}
	return found
}

// of is the objects of a type, by kind and name.
func of[T runtime.Object](objects map[string]runtime.Object) map[string]T {
	found := map[string]T{}
	for name, o := range objects {
		if typed, ok := o.(T); ok {
			found[name] = typed
		}
	}
	return found
}

// pods is the template of each Deployment and Job.
func pods(objects map[string]runtime.Object) map[string]core.PodTemplateSpec {
	found := map[string]core.PodTemplateSpec{}
	for name, d := range of[*apps.Deployment](objects) {
		found[name] = d.Spec.Template
	}
	for name, j := range of[*batch.Job](objects) {
		found[name] = j.Spec.Template
	}
	return found
}

// environment is what a pod is told by its ConfigMap and its Secret.
func environment(t *testing.T, objects map[string]runtime.Object, pod core.PodTemplateSpec) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, from := range pod.Spec.Containers[0].EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			for name, value := range of[*core.ConfigMap](objects)["ConfigMap/"+from.ConfigMapRef.Name].Data {
				env[name] = value
			}
		case from.SecretRef != nil:
			for name, value := range of[*core.Secret](objects)["Secret/"+from.SecretRef.Name].StringData {
				env[name] = value
			}
		}
	}
	if len(env) == 0 {
		t.Fatal("a pod without settings")
	}
	return env
}

// defaultOf is the default that docs/settings/README.md states for a variable.
func defaultOf(t *testing.T, variable string) time.Duration {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| \\[?`" + variable + "`[^|]*\\| `([^`]+)` \\|").FindStringSubmatch(settingsPage(t))
	if row == nil {
		t.Fatalf("docs/settings/README.md has no default of %s", variable)
	}
	d, err := time.ParseDuration(row[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func settingsPage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/settings/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Ensure the manifests are objects that the Kubernetes API knows, and that each reference and selector finds its object.
func TestManifestsAreValid(t *testing.T) {
	objects := manifests(t)
	for name, d := range of[*apps.Deployment](objects) {
		if !labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%s does not select its own pods", name)
		}
		budget := of[*policy.PodDisruptionBudget](objects)["PodDisruptionBudget/"+d.Name]
		if budget == nil || budget.Spec.MaxUnavailable.IntValue() != 1 || *d.Spec.Replicas < 2 ||
			!labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%s has no disruption budget, or too few replicas for one", name)
		}
	}
	for name, s := range of[*core.Service](objects) {
		pod := pods(objects)["Deployment/"+s.Name]
		if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects no pods", name)
		}
		for _, port := range s.Spec.Ports {
			if portOf(pod, port.TargetPort.StrVal) == 0 {
				t.Errorf("%s: the pods have no port %s", name, port.TargetPort.StrVal)
			}
		}
	}
	for name, pod := range pods(objects) {
		environment(t, objects, pod)
		everything := of[*networking.NetworkPolicy](objects)["NetworkPolicy/orders-default"].Spec
		if !labels.SelectorFromSet(everything.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels)) || len(everything.Ingress) > 0 {
			t.Errorf("%s is not closed by default", name)
		}
	}
}

func portOf(pod core.PodTemplateSpec, name string) int32 {
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}

// Ensure every container runs as another user than root, on a file system that it cannot write, without capabilities, a way to
// gain privileges, or the cluster's credentials, and has bounds on its memory.
func TestManifestsAreHardened(t *testing.T) {
	objects := manifests(t)
	for name, pod := range pods(objects) {
		p, c := pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
		switch {
		case len(pod.Spec.Containers) != 1, ptr.Deref(pod.Spec.AutomountServiceAccountToken, true), ptr.Deref(pod.Spec.EnableServiceLinks, true),
			p == nil, !ptr.Deref(p.RunAsNonRoot, false), ptr.Deref(p.RunAsUser, 0) == 0,
			p.SeccompProfile == nil, p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault,
			c == nil, ptr.Deref(c.AllowPrivilegeEscalation, true), !ptr.Deref(c.ReadOnlyRootFilesystem, false),
			c.Capabilities == nil, !slices.Equal(c.Capabilities.Drop, []core.Capability{"ALL"}), len(c.Capabilities.Add) > 0,
			c.Privileged != nil, pod.Spec.HostNetwork, len(pod.Spec.Volumes) > 0:
			t.Errorf("%s is not hardened", name)
		}
		limit := pod.Spec.Containers[0].Resources.Limits.Memory().Value()
		var soft int64
		if env := environment(t, objects, pod)["GOMEMLIMIT"]; env != "" {
			mebibytes, err := strconv.ParseInt(strings.TrimSuffix(env, "MiB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			soft = mebibytes << 20
		}
		if limit == 0 || soft*10 > limit*9 {
			t.Errorf("%s: GOMEMLIMIT leaves no room below the limit of the container", name)
		}
	}
}

// Ensure the probes ask the ops port for what docs/operations/health.md says, and wait longer than the service does itself.
func TestManifestsProbeTheOpsPort(t *testing.T) {
	objects := manifests(t)
	for name, d := range of[*apps.Deployment](objects) {
		c, env := d.Spec.Template.Spec.Containers[0], environment(t, objects, d.Spec.Template)
		for path, probe := range map[string]*core.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "ops" || probe.TimeoutSeconds < 3 {
				t.Errorf("%s does not ask for %s, or waits less than the service", name, path)
			}
		}
		if s := c.StartupProbe; s.HTTPGet.Path != "/livez" || s.HTTPGet.Port.StrVal != "ops" ||
			time.Duration(s.PeriodSeconds*s.FailureThreshold)*time.Second <= defaultOf(t, "DB_CONNECT_TIMEOUT") {
			t.Errorf("%s is killed while it waits for the database", name)
		}
		for variable, port := range map[string]string{"OPS_ADDR": "ops", "API_ADDR": "http"} {
			want := portOf(d.Spec.Template, port)
			if want != 0 && !strings.HasSuffix(env[variable], ":"+strconv.Itoa(int(want))) {
				t.Errorf("%s: %s is %s and port %s is %d", name, variable, env[variable], port, want)
			}
		}
	}
}

// Ensure a pod is not killed before its process has had SHUTDOWN_TIMEOUT, that an API goes on for a moment after its pod has
// left the Service, and that a migration is not killed within MIGRATE_TIMEOUT.
func TestManifestsLeaveTimeToStop(t *testing.T) {
	const margin = 5 * time.Second
	objects := manifests(t)
	for name, d := range of[*apps.Deployment](objects) {
		pod, env := d.Spec.Template.Spec, environment(t, objects, d.Spec.Template)
		stop := defaultOf(t, "SHUTDOWN_TIMEOUT")
		if told := env["SHUTDOWN_TIMEOUT"]; told != "" {
			var err error
			if stop, err = time.ParseDuration(told); err != nil {
				t.Fatal(err)
			}
		}
		if lifecycle := pod.Containers[0].Lifecycle; lifecycle != nil && lifecycle.PreStop != nil {
			stop += time.Duration(lifecycle.PreStop.Sleep.Seconds) * time.Second
		} else if portOf(d.Spec.Template, "http") != 0 {
			t.Errorf("%s stops listening while requests still come", name)
		}
		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace < stop+margin {
			t.Errorf("%s is killed after %s, and may take %s", name, grace, stop)
		}
	}
	for name, j := range of[*batch.Job](objects) {
		if time.Duration(*j.Spec.ActiveDeadlineSeconds)*time.Second <= defaultOf(t, "MIGRATE_TIMEOUT") {
			t.Errorf("%s is killed within MIGRATE_TIMEOUT", name)
		}
	}
}

// Ensure every variable is a setting, that each process has those that it cannot start without, and that it has no secret of
// another: the API no key of the provider, and only the migration the owner's password.
func TestManifestsGiveEachProcessItsSettings(t *testing.T) {
	objects, page := manifests(t), settingsPage(t)
	required := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| required \\| ([a-z, ]+) \\|")
	for name, pod := range pods(objects) {
		process, env := pod.Spec.Containers[0].Name, environment(t, objects, pod)
		for variable := range env {
			if !strings.Contains(page, "`"+variable+"`") {
				t.Errorf("%s: %s is no setting", name, variable)
			}
		}
		for _, row := range required.FindAllStringSubmatch(page, -1) {
			if slices.Contains(strings.Split(row[2], ", "), process) && env[row[1]] == "" {
				t.Errorf("%s is not told %s", name, row[1])
			}
		}
		for variable, only := range map[string]string{
			"STRIPE_API_KEY": "worker", "STRIPE_WEBHOOK_SECRET": "api", "MIGRATE_DATABASE_URL": "migrate",
		} {
			if env[variable] != "" && process != only {
				t.Errorf("%s has %s", name, variable)
			}
		}
	}
}
