import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Asks Kafka's own assignors. In go lines, one a group: assignor|topic:partitions,...|member~instance~subscription;...
 * Out come lines: member~assignment;... or ! and the exception. Blobs are in base64.
 */
public class RealAssignors {
    private static final Node NODE = new Node(1, "host", 9092);

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String answer;
            try {
                answer = asked(line.split("\\|", -1));
            } catch (RuntimeException e) {
                answer = "!" + e.getClass().getName();
            }
            System.out.println(answer);
        }
    }

    private static String asked(String[] group) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String member : group[2].split(";")) {
            String[] told = member.split("~", -1);
            Subscription subscription =
                ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(Base64.getDecoder().decode(told[2])));
            if (!told[1].isEmpty())
                subscription.setGroupInstanceId(Optional.of(told[1]));
            subscriptions.put(told[0], subscription);
        }
        return assignor(group[0])
            .assign(cluster(group[1]), new GroupSubscription(subscriptions))
            .groupAssignment().entrySet().stream()
            .map(share -> share.getKey() + "~" + base64(ConsumerProtocol.serializeAssignment(share.getValue())))
            .collect(Collectors.joining(";"));
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static Cluster cluster(String topics) {
        Node[] nodes = {NODE};
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : topics.split(",")) {
            String[] told = topic.split(":");
            for (int number = 0; number < Integer.parseInt(told[1]); number++)
                partitions.add(new PartitionInfo(told[0], number, NODE, nodes, nodes));
        }
        return new Cluster("cluster", List.of(NODE), partitions, Set.of(), Set.of());
    }

    private static String base64(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }
}
