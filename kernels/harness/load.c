#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel.h"
#include "load.h"

#define LOOK_MS   100
#define GRACE_MS  1000 /* a load that lost its server may be seen to end before it */

bool load_crashed(struct service *server, const char *when)
{
    if (!service_ended(server))
        return false;
    ak_crashed("the program under test ended %s: %s", when, service_end(server));
    return true;
}

int load_run(struct service *server, const struct service_request *r, uint64_t timeout_ms, struct load_looks *looks)
{
    struct service load;
    char why[SERVICE_WHY], last[256] = "";

    *looks = (struct load_looks){ 0, "the load was over before the first look" };
    if (service_start(&load, r, why) != 0)
        return ak_fail("%s", why);
    for (uint64_t waited = 0; service_wait(&load, LOOK_MS) != 0; waited += LOOK_MS) {
        uint64_t rss = ak_resident(&looks->why);
        looks->rss = rss > looks->rss ? rss : looks->rss;
        if (waited < timeout_ms && !service_ended(server))
            continue;
        service_stop(&load, SIGTERM, GRACE_MS);
        return load_crashed(server, "under load") ||
               ak_fail("%s still ran after %llu ms", r->argv[0], (unsigned long long)timeout_ms);
    }
    bool well = WIFEXITED(load.status) && WEXITSTATUS(load.status) == 0;
    if (!well)
        service_wait(server, GRACE_MS);
    if (load_crashed(server, "under load"))
        return 1;
    if (r->err != NULL)
        service_last_line(r->err, last, sizeof last);
    return well ? 0 : ak_fail("%s: %s%s%s", r->argv[0], service_end(&load), last[0] ? ": " : "", last);
}

int load_rest(struct service *server, uint64_t ms)
{
    service_wait(server, ms);
    return load_crashed(server, "at rest");
}
