#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel.h"
#include "drive.h"

#define LOOK_MS  100
#define GRACE_MS 1000 /* a load that lost its server may be seen to end before it */

bool drive_crashed(struct service *server, const char *when)
{
    if (!service_ended(server))
        return false;
    ak_crashed("the program under test ended %s: %s", when, service_end(server));
    return true;
}

int drive_run(struct service *server, const struct service_request *r, uint64_t timeout_ms)
{
    struct service load;
    char why[SERVICE_WHY], last[256] = "";

    if (service_start(&load, r, why) != 0)
        return ak_fail("%s", why);
    for (uint64_t waited = 0; service_wait(&load, LOOK_MS) != 0; waited += LOOK_MS) {
        if (waited < timeout_ms && !service_ended(server))
            continue;
        service_stop(&load, SIGTERM, GRACE_MS);
        return drive_crashed(server, "under load") ||
               ak_fail("%s still ran after %llu ms", r->argv[0], (unsigned long long)timeout_ms);
    }
    bool well = WIFEXITED(load.status) && WEXITSTATUS(load.status) == 0;
    if (!well)
        service_wait(server, GRACE_MS);
    if (drive_crashed(server, "under load"))
        return 1;
    if (r->err != NULL)
        service_complaint(r->err, last, sizeof last);
    return well ? 0 : ak_fail("%s: %s%s%s", r->argv[0], service_end(&load), last[0] ? ": " : "", last);
}

void drive_resident(const char *name, uint64_t bytes)
{
    ak_metric(name, "bytes", (double)bytes, bytes == 0 ? "the resident size cannot be read" : NULL);
}

int drive_rest(struct service *server, uint64_t ms)
{
    service_wait(server, ms);
    return drive_crashed(server, "at rest");
}
