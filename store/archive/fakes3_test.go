package archive

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeS3 speaks as much of S3 as the archive uses, for one bucket, in memory.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	content, exists := f.objects[key]
	switch {
	case r.Method == http.MethodPut:
		f.put(w, r, key)
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case key == "":
		f.list(w, r.URL.Query().Get("prefix"))
	case !exists:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("ETag", `"none"`)
		http.ServeContent(w, r, "", time.Unix(1, 0), strings.NewReader(string(content)))
	}
}

func (f *fakeS3) put(w http.ResponseWriter, r *http.Request, key string) {
	w.Header().Set("ETag", `"none"`)
	if source := r.Header.Get("X-Amz-Copy-Source"); source != "" {
		source, err := url.PathUnescape(source)
		_, from, _ := strings.Cut(strings.TrimPrefix(source, "/"), "/")
		content, exists := f.objects[from]
		if err != nil || !exists {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		f.objects[key] = slices.Clone(content)
		_, _ = io.WriteString(w, "<CopyObjectResult><ETag>none</ETag></CopyObjectResult>")
		return
	}
	content, err := readChunks(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.objects[key] = content
}

// readChunks reads a body; where each chunk of it is signed, without the signatures.
func readChunks(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var content []byte
	for body := bufio.NewReader(r.Body); ; {
		line, err := body.ReadString('\n')
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseInt(number, 16, 32)
		if err != nil || size == 0 {
			return content, err
		}
		chunk := make([]byte, size+2)
		if _, err := io.ReadFull(body, chunk); err != nil {
			return nil, errors.Join(fmt.Errorf("read a chunk"), err)
		}
		content = append(content, chunk[:size]...)
	}
}

func (f *fakeS3) list(w http.ResponseWriter, prefix string) {
	type object struct {
		Key          string
		Size         int
		LastModified time.Time
	}
	var found struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Contents []object
	}
	for key, content := range f.objects {
		if rest, ok := strings.CutPrefix(key, prefix); ok && !strings.Contains(rest, "/") {
			found.Contents = append(found.Contents, object{key, len(content), time.Now().UTC()})
		}
	}
	_ = xml.NewEncoder(w).Encode(found)
}
