#!/bin/sh
# threads, collections, direct buffers, compression
# needs: java javac
# size: long
cat >T.java <<'JAVA'
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

public class T {
    static long work(int k) throws Exception {
        long sum = 0;
        for (int i = 0; i < 400; i++) {
            StringBuilder text = new StringBuilder();
            for (int j = 0; j < 2000; j++) text.append(i * j % (k + 7)).append(',');
            byte[] in = text.toString().getBytes("UTF-8"), out = new byte[in.length + 100], back = new byte[in.length];
            Deflater deflater = new Deflater();
            deflater.setInput(in);
            deflater.finish();
            int n = deflater.deflate(out);
            deflater.end();
            Inflater inflater = new Inflater();
            inflater.setInput(out, 0, n);
            if (inflater.inflate(back) != in.length || !Arrays.equals(in, back)) throw new Exception("expanded to something else");
            inflater.end();
            ByteBuffer direct = ByteBuffer.allocateDirect(1 << (i % 18));
            while (direct.hasRemaining()) direct.put((byte) i);
            CRC32 crc = new CRC32();
            crc.update(out, 0, n);
            sum = sum * 31 + crc.getValue() + direct.capacity();
        }
        return sum;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> futures = new ArrayList<>();
        for (int k = 0; k < 16; k++) {
            final int id = k;
            futures.add(pool.submit(() -> work(id)));
        }
        for (Future<Long> future : futures) System.out.println(future.get());
        pool.shutdown();
        for (int i = 0; i < 2000; i++) {
            Thread thread = new Thread(() -> ByteBuffer.allocateDirect(4096));
            thread.start();
            thread.join();
        }
        System.out.println("done");
    }
}
JAVA
javac -J-Xmx256m T.java && java -Xmx256m -XX:MaxDirectMemorySize=64m -cp . T
