package main

import (
	"go/types"
	"regexp"
	"strings"
)

// effect is what a function that is not followed does with the objects that it gets. It reads whole what it gets of the
// parts of objects, except a path.
type effect string

const (
	effectNone     effect = "none"     // nothing, and it calls no function that reads objects of a cache
	effectCall     effect = "call"     // it only calls the functions that it gets
	effectEscape   effect = "escape"   // it may read everything
	effectWhole    effect = "whole"    // it reads everything, as a comparison does
	effectIdentity effect = "identity" // it reads the fields that every mask keeps
	effectKeep     effect = "keep"     // it stores the object; it comes back by an assertion or a typed value
	effectFill     effect = "fill"     // it reads an object from a cache into its argument
	effectWrite    effect = "write"    // it sends the object
	effectUpdate   effect = "update"   // fill, then write
	effectSame     effect = "same"     // its result is its first argument, or a copy of it
	effectInto     effect = "into"     // it copies its first argument to the second
	// "read:p": it reads the field p of the objects that it gets
	// "path p": its result is the field p of its first argument
)

func (e effect) fills() bool {
	return e == effectFill || e == effectUpdate || e == effectEscape || e == effectKeep
}
func (e effect) writes() bool { return e == effectWrite || e == effectUpdate }

// summaryTable lists effects and, for each, regular expressions for the full names of functions and methods, without
// pointers and type parameters. The first that matches counts.
const summaryTable = `
same      .*\.DeepCopy(Object)?
same      maps\.clone|github\.com/leatproject/leat/api\.Clone
into      .*\.DeepCopyInto
identity  .*\.(GetObjectKind|SetGroupVersionKind)|k8s\.io/apimachinery/pkg/apis/meta/v1\.ListInterface\.\w+
same      k8s\.io/apimachinery/pkg/api/meta\.(Accessor|CommonAccessor)
identity  k8s\.io/apimachinery/pkg/apis/meta/v1\.(Object|ObjectMeta)\.Get(Name|Namespace|UID|ResourceVersion|Generation|CreationTimestamp|DeletionTimestamp|DeletionGracePeriodSeconds|Finalizers|OwnerReferences)
identity  k8s\.io/apimachinery/pkg/apis/meta/v1\.(Object|ObjectMeta)\.Set\w+
path      k8s\.io/apimachinery/pkg/apis/meta/v1\.(Object|ObjectMeta)\.Get(Labels|Annotations|ManagedFields|GenerateName|SelfLink)

identity  k8s\.io/klog/v2\.(KObj|KObjs|KObjSlice)
identity  k8s\.io/client-go/tools/cache\.(MetaNamespaceKeyFunc|DeletionHandlingMetaNamespaceKeyFunc|ObjectToName|MetaObjectToName|DeletionHandlingObjectToName|MetaNamespaceIndexFunc)
read:metadata.labels k8s\.io/client-go/listers/.*ListerExpansion\.GetPod\w+
identity  k8s\.io/client-go/tools/(record|events)\.EventRecorder(Logger)?\.\w+
identity  k8s\.io/client-go/tools/reference\.\w+
identity  k8s\.io/apimachinery/pkg/runtime\.Scheme\.(ObjectKinds|Default)
none      k8s\.io/apimachinery/pkg/runtime\.(Scheme|SchemeBuilder)\.(Add\w+|Register|Name|New|NewSchemeBuilder)|k8s\.io/apimachinery/pkg/runtime\.NewSchemeBuilder
identity  k8s\.io/apimachinery/pkg/runtime\.ObjectTyper\.\w+
none      .*\.(RegisterConversions|RegisterDefaults|AddToGroupVersion)
none      sigs\.k8s\.io/controller-runtime/pkg/scheme\.Builder\.Register
identity  sigs\.k8s\.io/controller-runtime/pkg/client/apiutil\.\w+
identity  sigs\.k8s\.io/controller-runtime/pkg/client\.(ObjectKeyFromObject|(Client|WithWatch)\.(GroupVersionKindFor|IsObjectNamespaced))
identity  sigs\.k8s\.io/controller-runtime/pkg/client\.(Writer|Client|WithWatch|SubResourceClient)\.(Delete|DeleteAllOf)
identity  sigs\.k8s\.io/controller-runtime(/pkg/controller/controllerutil)?\.(SetControllerReference|SetOwnerReference|HasControllerReference|HasOwnerReference|RemoveOwnerReference|RemoveControllerReference)
identity  sigs\.k8s\.io/controller-runtime/pkg/(builder|handler|source)\..*
identity  github\.com/leatproject/leat/api\.KeyOf|github\.com/leatproject/leat/cachedclient\..*\.(Wrote|Deleted)
identity  github\.com/leatproject/leat/reconcile/(events|expectations)\..*

keep      sync\.Map\.\w+|sync/atomic\.(Pointer|Value)\.\w+|container/(list|heap)\..*|context\.WithValue
keep      k8s\.io/client-go/util/workqueue\..*
keep      k8s\.io/client-go/tools/cache\.(Store|Indexer|ThreadSafeStore|Queue|ResourceEventHandler\w*)\.\w+
keep      k8s\.io/apimachinery/pkg/api/meta\.(ExtractList\w*|EachListItem\w*|SetList|LenList|GetItemsPtr|ListAccessor|TypeAccessor|IsListType)
keep      github\.com/leatproject/leat/(workqueue|cache|deltafifo)\..*

whole     reflect\.DeepEqual|.*\.Equalities\.(DeepEqual|DeepDerivative)\w*|github\.com/google/go-cmp/cmp\.\w+
whole     k8s\.io/apimachinery/pkg/(labels|fields)\..*
whole     k8s\.io/apimachinery/pkg/apis/meta/v1\.(LabelSelectorAsSelector|LabelSelectorAsMap|FormatLabelSelector)
call      sort\.(Slice|SliceStable|SliceIsSorted)

fill      sigs\.k8s\.io/controller-runtime/pkg/(client|cache)\.\w+\.(Get|List|GetInformer)
fill      encoding/json\.(Unmarshal|Decoder\.Decode)|sigs\.k8s\.io/(yaml|json)\.Unmarshal\w*
fill      k8s\.io/apimachinery/pkg/runtime\.(Decoder\.Decode|DecodeInto|Decode|UnstructuredConverter\.FromUnstructured)
fill      sigs\.k8s\.io/controller-runtime/pkg/client\.(Writer|Client|WithWatch|SubResource\w+|StatusWriter)\.Patch
update    sigs\.k8s\.io/controller-runtime(/pkg/controller/controllerutil)?\.CreateOr(Update|Patch)
write     sigs\.k8s\.io/controller-runtime/pkg/client\.(Writer|Client|WithWatch|SubResource\w+|StatusWriter)\.(Create|Update|Apply)
write     sigs\.k8s\.io/controller-runtime/pkg/client\.(MergeFrom|MergeFromWithOptions|StrategicMergeFrom)
write     k8s\.io/client-go/(kubernetes/typed/.*|gentype\.\w+|dynamic\.\w+)\.(Create|Update\w*|Apply\w*)
write     k8s\.io/client-go/rest\.Request\.Body
write     github\.com/leatproject/leat/(cachedclient|apiclient|testkit)\..*\b(Create|Update|Apply|Change)\w*
`

type summaryRow struct {
	effect
	names *regexp.Regexp
}

var summaries = func() (rows []summaryRow) {
	for line := range strings.Lines(summaryTable) {
		if effectName, names, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			rows = append(rows, summaryRow{effect(effectName), regexp.MustCompile("^(" + strings.TrimSpace(names) + ")$")})
		}
	}
	return rows
}()

var summaryOf = map[string]effect{}

// summary returns the effect of a function, if the table knows it.
func summary(name string) (effect, bool) {
	found, ok := summaryOf[name]
	if !ok {
		for _, row := range summaries {
			if row.names.MatchString(name) {
				if found = row.effect; found == "path" {
					_, field, _ := strings.Cut(name, ".Get")
					found = effect("path " + strings.ToLower(field[:1]) + field[1:])
				}
				break
			}
		}
		summaryOf[name] = found
	}
	return found, found != ""
}

func fullName(f *types.Func) string {
	name := f.Origin().FullName()
	if i := strings.IndexByte(name, '['); i >= 0 {
		if end := strings.IndexByte(name, ']'); end > i {
			name = name[:i] + name[end+1:]
		}
	}
	return strings.NewReplacer("(*", "", "(", "", ")", "").Replace(name)
}
