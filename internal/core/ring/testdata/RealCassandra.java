// RealCassandra asks the classes of Cassandra itself for the answers that the
// golden files of this package hold. It is run by hand when a release is added,
// with the class path of org.apache.cassandra:cassandra-all:5.0.6 in $CP (as
// `mvn dependency:build-classpath` prints it), Java 17 and a cassandra.yaml that
// names Murmur3Partitioner and SimpleSnitch in $YAML:
//
//   OPEN=$(for p in java.base/jdk.internal.ref java.base/sun.nio.ch java.base/java.nio java.base/java.lang; do
//            echo --add-opens $p=ALL-UNNAMED --add-exports $p=ALL-UNNAMED; done)
//   javac -cp $CP -d classes RealCassandra.java
//   java $OPEN -Dcassandra.config=file://$YAML -cp classes:$CP \
//     org.apache.cassandra.dht.tokenallocator.RealCassandra placement  > placement.golden
//   java $OPEN -Dcassandra.config=file://$YAML -cp classes:$CP \
//     org.apache.cassandra.dht.tokenallocator.RealCassandra allocation > ../tokens/testdata/allocation.golden
//   java $OPEN -Dcassandra.config=file://$YAML -cp classes:$CP \
//     org.apache.cassandra.dht.tokenallocator.RealCassandra keys       > keys.golden
//
// It lives in Cassandra's package because TokenAllocation is not public.
package org.apache.cassandra.dht.tokenallocator;

import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.*;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.dht.*;
import org.apache.cassandra.locator.*;

public class RealCassandra
{
    static class Places extends SimpleSnitch
    {
        final Map<InetAddressAndPort, String[]> at = new HashMap<>();
        @Override public String getDatacenter(InetAddressAndPort e) { return at.get(e)[0]; }
        @Override public String getRack(InetAddressAndPort e) { return at.get(e)[1]; }
        @Override public String getLocalDatacenter() { return "dc1"; }
    }

    static InetAddressAndPort address(int node) throws Exception
    {
        return InetAddressAndPort.getByAddressOverrideDefaults(InetAddress.getByName("127.0.0.1"), node + 1);
    }

    public static void main(String[] args) throws Exception
    {
        DatabaseDescriptor.toolInitialization();
        if (args[0].equals("placement"))
            placement();
        else if (args[0].equals("keys"))
            keys();
        else
            allocation();
        System.exit(0);
    }

    // Rings of random tokens; for every token of the ring, and for three that are
    // usually not in it, the natural endpoints in Cassandra's order.
    static void placement() throws Exception
    {
        String[][] rings = {
            // datacenter/rack=nodes ..., tokens per node, replications
            { "dc1/r1=1", "2", "SimpleStrategy:3", "dc1=1", "dc1=3" },
            { "dc1/r1=5", "3", "SimpleStrategy:3", "dc1=3", "dc1=2" },
            { "dc1/r1=2 dc1/r2=2 dc1/r3=2", "4", "SimpleStrategy:2", "dc1=3", "dc1=2", "dc1=5", "dc1=7" },
            { "dc1/r1=4 dc1/r2=1", "4", "dc1=3", "dc1=2", "dc1=4" },
            { "dc1/r1=3 dc1/r2=1 dc1/r3=1 dc1/r4=2", "3", "dc1=3", "dc1=4", "dc1=5", "dc1=1" },
            { "dc1/r1=2 dc1/r2=2 dc1/r3=1 dc2/r1=2 dc2/r2=1", "4", "dc1=3,dc2=2", "dc2=3", "dc1=2,dc2=1", "dc1=3,dc3=3", "SimpleStrategy:4" },
            { "dc1/r1=1 dc1/r2=1 dc1/r3=1 dc2/r1=3 dc3/r9=2", "3", "dc1=3,dc2=3,dc3=3", "dc1=1,dc3=2", "SimpleStrategy:3" },
        };
        Random random = new Random(20240611);
        for (String[] spec : rings)
        {
            Places places = new Places();
            TokenMetadata metadata = new TokenMetadata(places).cloneWithNewPartitioner(Murmur3Partitioner.instance);
            System.out.println("ring");
            int node = 0;
            for (String rack : spec[0].split(" "))
            {
                String[] location = rack.split("=")[0].split("/");
                for (int i = 0; i < Integer.parseInt(rack.split("=")[1]); i++)
                {
                    List<Token> tokens = new ArrayList<>();
                    StringBuilder text = new StringBuilder();
                    for (int t = 0; t < Integer.parseInt(spec[1]); t++)
                    {
                        Token token = Murmur3Partitioner.instance.getRandomToken(random);
                        tokens.add(token);
                        text.append(t == 0 ? "" : ",").append(token);
                    }
                    places.at.put(address(node), location);
                    metadata.updateNormalTokens(tokens, address(node));
                    System.out.printf("node n%d %s %s %s%n", node++, location[0], location[1], text);
                }
            }
            for (int r = 2; r < spec.length; r++)
            {
                AbstractReplicationStrategy strategy;
                Map<String, String> options = new TreeMap<>();
                if (spec[r].startsWith("SimpleStrategy:"))
                {
                    options.put("replication_factor", spec[r].substring(15));
                    strategy = new SimpleStrategy("ks", metadata, places, options);
                }
                else
                {
                    for (String dc : spec[r].split(","))
                        options.put(dc.split("=")[0], dc.split("=")[1]);
                    strategy = new NetworkTopologyStrategy("ks", metadata, places, options);
                }
                System.out.printf("replication %s %s%n", strategy.getClass().getSimpleName(), options);
                List<Token> asked = new ArrayList<>(metadata.sortedTokens());
                asked.add(new Murmur3Partitioner.LongToken(Long.MIN_VALUE + 1));
                asked.add(new Murmur3Partitioner.LongToken(0));
                asked.add(new Murmur3Partitioner.LongToken(Long.MAX_VALUE));
                for (Token token : asked)
                {
                    StringBuilder text = new StringBuilder();
                    for (Replica replica : strategy.calculateNaturalReplicas(token, metadata))
                        text.append(" n").append(replica.endpoint().getPort() - 1);
                    System.out.println(token + text.toString());
                }
            }
        }
    }

    // Partition keys, each by the values of its columns, and their tokens: of each type, and bytes at random of
    // all lengths that a hash treats differently.
    static void keys() throws Exception
    {
        Map<String, AbstractType<?>> types = Map.of("text", UTF8Type.instance, "int", Int32Type.instance,
            "bigint", LongType.instance, "uuid", UUIDType.instance, "blob", BytesType.instance);
        List<String[]> keys = new ArrayList<>(List.of(new String[][] {
            { "text:1" }, { "text:bob" }, { "text:a:b" }, { "text:München" }, { "text:кассандра, царевна Трои" },
            { "int:1" }, { "int:-1" }, { "int:2147483647" }, { "bigint:1" }, { "bigint:-9223372036854775808" },
            { "uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8" }, { "uuid:F47AC10B-58CC-4372-A567-0E02B2C3D479" },
            { "text:bob", "int:1" }, { "int:1", "text:bob" }, { "text:", "text:" }, { "text:", "int:-1" },
            { "uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8", "bigint:-2", "text:é" },
        }));
        Random random = new Random(20261126);
        for (int length = 1; length <= 50; length++)
        {
            byte[] bytes = new byte[length];
            random.nextBytes(bytes);
            keys.add(new String[]{ "blob:0x" + HexFormat.of().formatHex(bytes) });
            Arrays.fill(bytes, (byte) (0x80 + length));
            keys.add(new String[]{ "blob:0x" + HexFormat.of().formatHex(bytes) });
        }
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String[] columns : keys)
        {
            ByteBuffer[] values = new ByteBuffer[columns.length];
            for (int i = 0; i < values.length; i++)
            {
                String[] column = columns[i].split(":", 2);
                String value = column[0].equals("blob") ? column[1].substring(2) : column[1];
                values[i] = types.get(column[0]).fromString(value);
            }
            ByteBuffer key = values.length == 1 ? values[0] : CompositeType.build(ByteBufferAccessor.instance, values);
            out.println(Murmur3Partitioner.instance.getToken(key) + "\t" + String.join("\t", columns));
        }
    }

    // Nodes that join one datacenter one after the other, each as a real node does
    // it: a TokenAllocation of its own over the ring as it then is. Tokens are in
    // the order in which Cassandra chose them, so the first of a ring is its
    // random start.
    static void allocation() throws Exception
    {
        String[][] joins = {
            // rf, tokens, rack of each node in the order of joining
            { "1", "1", "a a a a a a" },
            { "1", "4", "a b a b a b a b c c" },
            { "1", "16", "a a a a a a a a a a a a a a a a a a a a" },
            { "3", "4", "a b c a b c a b c a b c" },
            { "3", "16", "a b c a b c a b c a a c c" },
            { "2", "8", "a b a b a b a b a b" },
            { "3", "4", "a a a a a a a a" },
            { "3", "16", "a a a a a a a a a a a a" },
            { "2", "8", "a a a a a a" },
            { "3", "8", "a b c d a b c d a b c d a b c d" },
            { "3", "16", "a b c d e a b c d e a b c d e" },
            { "2", "4", "a b c a b c a a a a b" },
        };
        for (String[] spec : joins)
        {
            int rf = Integer.parseInt(spec[0]), count = Integer.parseInt(spec[1]);
            Places places = new Places();
            TokenMetadata metadata = new TokenMetadata(places).cloneWithNewPartitioner(Murmur3Partitioner.instance);
            System.out.printf("joins rf=%d tokens=%d%n", rf, count);
            int node = 0;
            for (String rack : spec[2].split(" "))
            {
                places.at.put(address(node), new String[]{ "dc1", rack });
                Collection<Token> tokens = TokenAllocation.create(places, metadata, rf, count).allocate(address(node));
                metadata.updateNormalTokens(tokens, address(node));
                StringBuilder text = new StringBuilder();
                for (Token token : tokens)
                    text.append(text.length() == 0 ? "" : ",").append(token);
                System.out.printf("node n%d %s %s%n", node++, rack, text);
            }
        }
    }
}
