/* TLS of one connection, by the system's libssl. Its headers are not needed to build: few functions, opaque pointers. */
#include "amqp.h"

#include <dlfcn.h>
#include <pthread.h>

static struct {
    void *(*client_method)(void);
    void *(*context_new)(const void *);
    void *(*new)(void *);
    int (*set_fd)(void *, int);
    int (*connect)(void *);
    int (*read)(void *, void *, int);
    int (*write)(void *, const void *, int);
    int (*shutdown)(void *);
    void (*free)(void *);
} ssl;
static void *context;

static void *look_up(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        die("libssl has no %s", name);
    return found;
}

static void load_library(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    if (!library)
        library = dlopen("libssl.so", RTLD_NOW);
    if (!library)
        die("TLS needs libssl: %s", dlerror());
    ssl.client_method = look_up(library, "TLS_client_method");
    ssl.context_new = look_up(library, "SSL_CTX_new");
    ssl.new = look_up(library, "SSL_new");
    ssl.set_fd = look_up(library, "SSL_set_fd");
    ssl.connect = look_up(library, "SSL_connect");
    ssl.read = look_up(library, "SSL_read");
    ssl.write = look_up(library, "SSL_write");
    ssl.shutdown = look_up(library, "SSL_shutdown");
    ssl.free = look_up(library, "SSL_free");
    context = ssl.context_new(ssl.client_method());
}

void *tls_connect(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_library);
    void *tls = ssl.new(context);
    if (!tls || ssl.set_fd(tls, fd) != 1 || ssl.connect(tls) != 1)
        die("the TLS handshake failed");
    return tls;
}

long tls_send(void *tls, const void *bytes, size_t length) { return ssl.write(tls, bytes, (int)length); }
long tls_receive(void *tls, void *bytes, size_t length) { return ssl.read(tls, bytes, (int)length); }

void tls_free(void *tls)
{
    ssl.shutdown(tls);
    ssl.free(tls);
}
