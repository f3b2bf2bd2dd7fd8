/* init.c - first process of the emulated machine: runs /numa with the library preloaded, its output to the second serial
 * port, and ends the machine with its exit status.
 *
 * The kernel hands what it does not know of its command line to us as environment: "library=/lib/NAME", or nothing for the
 * C library's malloc. A machine that panics or that qemu refuses to start must not look like a pass, so success is a value of
 * its own on the debug port, of which qemu makes the exit status 2 * value + 1.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define EXIT_PORT  0xf4
#define EXIT_BASE  32 /* qemu ends with 2 * (EXIT_BASE + status) + 1: 65 is success */
#define STATUS_MAX 63

static _Noreturn void machine_end(int status)
{
    sync();
    if (ioperm(EXIT_PORT, 4, 1) == 0)
        outl(EXIT_BASE + (unsigned)(status & STATUS_MAX), EXIT_PORT);
    reboot(RB_POWER_OFF); /* without the port: qemu ends with 0, which is no pass */
    for (;;)
        pause();
}

static void output_to(const char *port)
{
    struct termios raw;
    int file = open(port, O_RDWR | O_NOCTTY);
    if (file < 0) {
        perror(port);
        machine_end(3);
    }
    if (tcgetattr(file, &raw) == 0) {
        cfmakeraw(&raw);
        tcsetattr(file, TCSANOW, &raw);
    }
    dup2(file, STDOUT_FILENO);
    close(file);
}

int main(void)
{
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/dev", 0755);
    if (mount("proc", "/proc", "proc", 0, NULL) != 0 || mount("sys", "/sys", "sysfs", 0, NULL) != 0) {
        perror("mount");
        machine_end(3);
    }
    mount("dev", "/dev", "devtmpfs", 0, NULL); /* the kernel may have done so already */
    pid_t child = fork();
    if (child == 0) {
        const char *library = getenv("library");
        output_to("/dev/ttyS1");
        if (library != NULL)
            setenv("LD_PRELOAD", library, 1);
        execl("/numa", "numa", (char *)NULL);
        perror("/numa");
        _exit(3);
    }
    int status = 0;
    while (waitpid(child, &status, 0) != child)
        ;
    machine_end(WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_MAX);
}
