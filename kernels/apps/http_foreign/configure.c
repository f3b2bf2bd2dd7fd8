#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "configure.h"

#define FILES_BESIDE 64 /* open files that are no connections; each connection may hold a file, too */

static void lighttpd_write(FILE *f, const struct site *s)
{
    fprintf(f,
            "server.document-root = \"%s\"\n"
            "server.bind = \"127.0.0.1\"\n"
            "server.port = %u\n"
            "server.errorlog = \"%s/errors\"\n"
            "server.max-connections = %u\n"
            "server.max-fds = %u\n",
            s->root, s->port, s->folder, s->connections + FILES_BESIDE, 2 * s->connections + FILES_BESIDE);
}

/* master_process off: one process, as lighttpd is, which ends with the launch whatever ends that. */
static void nginx_write(FILE *f, const struct site *s)
{
    fprintf(f, "daemon off;\nmaster_process off;\npid %s/pid;\nerror_log %s/errors;\n", s->folder, s->folder);
    fprintf(f, "worker_rlimit_nofile %u;\nevents { worker_connections %u; }\nhttp {\n  access_log off;\n",
            2 * s->connections + FILES_BESIDE, 2 * s->connections + FILES_BESIDE);
    static const char *const folders[] = { "client_body", "proxy", "fastcgi", "uwsgi", "scgi" };
    for (unsigned i = 0; i < sizeof folders / sizeof folders[0]; i++)
        fprintf(f, "  %s_temp_path %s/%s;\n", folders[i], s->folder, folders[i]);
    fprintf(f, "  server { listen 127.0.0.1:%u; root %s; }\n}\n", s->port, s->root);
}

int configure(const char *server, const struct site *s, const char *path, const char *args[CONFIGURE_ARGS])
{
    static char errors[160];
    const char *const lighttpd[] = { "-D", "-f", path, NULL };
    const char *const nginx[] = { "-p", s->folder, "-e", errors, "-c", path, NULL };
    int is_nginx = strcmp(server, "nginx") == 0;
    FILE *f = fopen(path, "we");

    if (f == NULL)
        return -1;
    snprintf(errors, sizeof errors, "%s/errors", s->folder);
    (is_nginx ? nginx_write : lighttpd_write)(f, s);
    memcpy(args, is_nginx ? nginx : lighttpd, is_nginx ? sizeof nginx : sizeof lighttpd);
    int well = !ferror(f);
    return fclose(f) == 0 && well ? 0 : -1;
}
